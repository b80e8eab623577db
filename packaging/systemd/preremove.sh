#!/bin/sh
# Stops the service when the package goes, not when it is upgraded.
set -e
case "$1" in
upgrade | 1) exit 0 ;; # of dpkg, of rpm
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now junctor.service || true
fi
