// The sections of a server's page.
import { useMemo, useState } from 'react';
import { get, send, type CallStats, type ToolList } from '../lib/api';
import { formatCount, formatDuration, plural } from '../lib/format';
import { useReloadOnChange } from '../lib/live';
import { href, useQuery } from '../lib/use';
import { useMe } from '../me';
import { TimeChart } from '../ui/chart';
import { QueryContent, Table } from '../ui/grid';
import { CopyButton, ErrorNote, Skeleton, Switch, useAction } from '../ui/ui';

/** ConnectionSettings shows how a server is configured: the command or the URL, and the names of its environment variables or headers. */
export function ConnectionSettings({ name, version }: { name: string; version: string }) {
  const path = `/api/servers/${encodeURIComponent(name)}/config`;
  const entry = useQuery<{ server: { command?: string; args?: string[]; url?: string; env?: Record<string, string>; headers?: Record<string, string> } }>(`${path} ${version}`, (s) => get(path, s));
  const e = entry.data?.server;
  if (!e) return null; // the server is not in the file
  const line = e.url ?? [e.command, ...(e.args ?? [])].map((w) => (/[\s"']/.test(w ?? '') ? JSON.stringify(w) : w)).join(' ');
  const names = Object.keys(e.env ?? e.headers ?? {});
  return (
    <section>
      <h3>{e.url ? 'Address' : 'Command'}</h3>
      <div className="row runs">
        <code className="wrap grow">{line}</code>
        <CopyButton text={line} label={e.url ? 'Copy address' : 'Copy command'} />
      </div>
      {names.length > 0 && (
        <p className="muted small wrap">
          {e.url ? 'Headers' : 'Environment'}: <span className="mono">{names.join(', ')}</span>
        </p>
      )}
    </section>
  );
}

/** RecentCalls charts the calls of the last hour. */
export function RecentCalls({ server }: { server: string }) {
  const stats = useQuery(`traffic ${server}`, async (signal) => {
    const to = Date.now();
    const from = to - 3600_000;
    const p = new URLSearchParams({ server, from: new Date(from).toISOString(), to: new Date(to).toISOString(), intervals: '60' });
    return { from, to, stats: await get<CallStats>(`/api/stats?${p}`, signal) };
  }, 15_000);
  if (!stats.data) return stats.error ? <ErrorNote error={stats.error} retry={() => void stats.reload()} /> : <Skeleton rows={1} height={132} />;
  const { from, to, stats: s } = stats.data;
  const intervals = s.intervals ?? [];
  const failures = s.total.errors + s.total.failed;
  return (
    <section>
      <div className="row">
        <h3 className="grow">Calls in the last hour</h3>
        <a className="small" href={href(['activity'], { server })}>
          All activity
        </a>
      </div>
      {s.total.calls === 0 ? (
        <p className="muted">None.</p>
      ) : (
        <>
          <p className="small">
            <strong>{plural(s.total.calls, 'call')}</strong>
            {failures > 0 && <span className="bad-text"> · {formatCount(failures)} failed</span>}
            <span className="muted">
              {' '}
              · p50 {formatDuration(s.total.p50Ms)} · p95 {formatDuration(s.total.p95Ms)} · p99 {formatDuration(s.total.p99Ms)}
            </span>
          </p>
          <TimeChart
            label={`Calls of ${server} in the last hour: ${formatCount(s.total.calls)}, ${formatCount(failures)} failed`}
            kind="bars"
            height={110}
            from={from}
            to={to}
            format={formatCount}
            series={[
              { label: 'failed', className: 'series-bad', values: intervals.map((p) => p.errors + p.failed) },
              { label: 'ok', className: 'series-ok', values: intervals.map((p) => p.calls - p.errors - p.failed) },
            ]}
          />
        </>
      )}
    </section>
  );
}

/** ServerTools lists the tools of a server; administrators can disable them or require approval. */
export function ServerTools({ server }: { server: string }) {
  const me = useMe();
  const list = useQuery<ToolList>(`tools of ${server}`, (s) => get(`/api/tools?server=${encodeURIComponent(server)}`, s));
  useReloadOnChange(list.reload);
  const [busy, act] = useAction();
  const change = (tool: string, patch: Record<string, unknown>) => void act(tool, () => send('PATCH', `/api/tools/${encodeURIComponent(server)}/${encodeURIComponent(tool)}`, patch)).then(() => list.reload());
  return (
    <section>
      <h3>Tools</h3>
      <QueryContent query={list}>
        {({ tools }) => (
          <Table label={`Tools of ${server}`} className="server-tools" columns={me.admin ? ['Tool', 'On', 'Ask first'] : ['Tool']}>
            {tools.map((t) => (
              <tr key={t.tool} className={t.enabled ? '' : 'off'}>
                <th scope="row">
                  <a href={href(['tools', server, t.tool])}>{t.tool}</a>
                  <span className="block small muted ellipsis">{t.summary}</span>
                </th>
                {me.admin && (
                  <td>
                    <Switch on={t.enabled} label={`${t.tool} is on`} disabled={busy !== null} onChange={(on) => change(t.tool, { enabled: on })} />
                  </td>
                )}
                {me.admin && (
                  <td>
                    <Switch on={t.approval === 'ask'} label={`Ask before ${t.tool}`} disabled={busy !== null} onChange={(on) => change(t.tool, { approval: on ? 'ask' : 'auto' })} />
                  </td>
                )}
              </tr>
            ))}
          </Table>
        )}
      </QueryContent>
    </section>
  );
}

interface ListedItem {
  name: string;
  title?: string;
  uri?: string;
  uriTemplate?: string;
  description?: string;
}

/** ResourcesAndPrompts lists the resources and prompts of a server. */
export function ResourcesAndPrompts({ server }: { server: string }) {
  const listed = useQuery(`catalog ${server}`, async (signal) => {
    const listMethod = async (method: string, key: string) => {
      const res = await send<{ result: Record<string, ListedItem[]> }>('POST', `/api/servers/${encodeURIComponent(server)}/request`, { method }, signal).catch(() => null);
      return res?.result[key] ?? []; // most servers lack one of these methods
    };
    const [resources, templates, prompts] = await Promise.all([listMethod('resources/list', 'resources'), listMethod('resources/templates/list', 'resourceTemplates'), listMethod('prompts/list', 'prompts')]);
    return { resources: [...resources, ...templates], prompts };
  });
  if (!listed.data) return null;
  const groups = [
    ['Resources', listed.data.resources],
    ['Prompts', listed.data.prompts],
  ] as const;
  return groups.map(([title, list]) =>
    list.length === 0 ? null : (
      <section key={title}>
        <h3>
          {title} <span className="muted">{formatCount(list.length)}</span>
        </h3>
        <ul className="plain-list">
          {list.slice(0, 200).map((o, i) => (
            <li key={i} className="wrap">
              <strong>{o.title || o.name}</strong> {(o.uri || o.uriTemplate) && <code className="small">{o.uri ?? o.uriTemplate}</code>}
              {o.description && <span className="block small muted">{o.description}</span>}
            </li>
          ))}
        </ul>
      </section>
    ),
  );
}

/** StderrLog shows the latest stderr lines of a server's process, with search. */
export function StderrLog({ lines }: { lines: string[] }) {
  const [text, setText] = useState('');
  const shown = useMemo(() => {
    const filter = text.toLowerCase();
    return filter ? lines.filter((l) => l.toLowerCase().includes(filter)) : lines;
  }, [lines, text]);
  return (
    <section>
      <div className="row">
        <h3 className="grow">Latest output on stderr</h3>
        {lines.length > 5 && <input type="search" className="log-search" aria-label="Search the output" placeholder="Search" value={text} onChange={(e) => setText(e.target.value)} />}
        <CopyButton text={lines.join('\n')} label="Copy stderr" />
      </div>
      {shown.length === 0 ? (
        <p className="muted">No line has “{text}”.</p>
      ) : (
        <pre className="stderr" tabIndex={0} aria-label="stderr">
          {shown.join('\n')}
        </pre>
      )}
    </section>
  );
}
