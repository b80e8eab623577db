#!/bin/sh
# Makes the user that the service runs as. The service is not started: what it
# runs is for the administrator to say.
set -e
if ! getent passwd junctor >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/junctor --shell /usr/sbin/nologin junctor
fi
chown -R root:junctor /etc/junctor
chmod 750 /etc/junctor
chmod 640 /etc/junctor/junctor.json
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart junctor.service || true
fi
