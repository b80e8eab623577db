import { lazy, Suspense, useEffect, useMemo, useRef } from 'react';
import { get, type GetResponse, type Status, type Tool, type ToolList } from '../lib/api';
import { formatCount, plural } from '../lib/format';
import { href, navigate, useDebounced, useQuery, useRoute } from '../lib/use';
import { Icon } from '../ui/icons';
import { VirtualList } from '../ui/list';
import { Badge, EmptyState, ErrorNote, Note, Skeleton } from '../ui/ui';

const ToolPage = lazy(() => import('./tool').then((m) => ({ default: m.ToolPage })));

const stateOptions = [
  ['', 'Any state'],
  ['enabled', 'Enabled'],
  ['disabled', 'Disabled'],
  ['changed', 'Changed'],
  ['flagged', 'Flagged'],
] as const;

export function ToolsView({ status }: { status?: Status }) {
  const { parts, query } = useRoute();
  const [, server, ...rest] = parts;
  const tool = rest.join('/');
  const text = query.get('q') ?? '';
  const filterServer = query.get('server') ?? '';
  const tag = query.get('tag') ?? '';
  const state = query.get('state') ?? '';
  const debouncedText = useDebounced(text.trim(), 120);
  const searchInput = useRef<HTMLInputElement>(null);

  const params = new URLSearchParams();
  if (debouncedText) {
    params.set('query', debouncedText);
    params.set('limit', '100');
  }
  if (filterServer) params.set('server', filterServer);
  if (tag) params.set('tag', tag);
  if (state) params.set('state', state);
  const path = '/api/tools?' + params.toString();
  const list = useQuery<ToolList>(path, (s) => get(path, s), 60_000);
  // The list may have thousands of entries, so it is reloaded when the status
  // changes and rarely otherwise. The first status counts as a change, because
  // the list may have been read before it.
  const catalogVersion = status && [status.catalog, ...status.servers.map((s) => `${s.name} ${s.status}`)].join('\n');
  const loadedVersion = useRef(catalogVersion);
  const { reload } = list;
  useEffect(() => {
    if (loadedVersion.current !== catalogVersion) void reload();
    loadedVersion.current = catalogVersion;
  }, [catalogVersion, reload]);
  const servers = useQuery<GetResponse<'/api/servers'>>('servers', (s) => get('/api/servers', s), 30_000);
  const tags = useMemo(() => [...new Set([...(servers.data?.servers ?? []).flatMap((s) => s.tags ?? []), ...(list.data?.tools ?? []).flatMap((t) => t.tags ?? [])])].sort(), [servers.data, list.data]);

  const setFilters = (change: Record<string, string>) => {
    const filters = { q: text, server: filterServer, tag, state, ...change };
    navigate(href(server && tool ? ['tools', server, tool] : ['tools'], filters), true);
  };
  const link = (t: Tool) => href(['tools', t.server, t.tool], { q: text, server: filterServer, tag, state });

  useEffect(() => {
    const focusSearch = (e: KeyboardEvent) => {
      if (e.key === '/' && !(e.target instanceof HTMLElement && e.target.closest('input, textarea, select, [contenteditable]'))) {
        e.preventDefault();
        searchInput.current?.focus();
        searchInput.current?.select();
      }
    };
    window.addEventListener('keydown', focusSearch);
    return () => window.removeEventListener('keydown', focusSearch);
  }, []);

  const tools = list.data?.tools ?? [];
  const filtered = Boolean(debouncedText || filterServer || tag || state);
  return (
    <div className={`tools split ${tool ? 'has-detail' : ''}`}>
      <section className="split-list" aria-label="Tools">
        <header className="view-head">
          <h1 className="grow">Tools</h1>
          <span className="muted small" role="status">
            {list.data && (debouncedText ? plural(tools.length, 'match', 'matches') : formatCount(list.data.total))}
          </span>
        </header>
        <div className="filters">
          <div className="searchbox">
            <Icon name="search" size={16} />
            <input
              ref={searchInput}
              type="search"
              aria-label="Search tools"
              placeholder="Search by name or task"
              value={text}
              onChange={(e) => setFilters({ q: e.target.value })}
              onKeyDown={(e) => {
                if (e.key === 'ArrowDown') {
                  e.preventDefault();
                  document.querySelector<HTMLElement>('.split-list .vlist a')?.focus();
                }
                if (e.key === 'Enter' && tools[0]) navigate(link(tools[0]));
              }}
            />
            <kbd className="hide-narrow">/</kbd>
          </div>
          <div className="row tight">
            <select aria-label="Server" value={filterServer} onChange={(e) => setFilters({ server: e.target.value })}>
              <option value="">All servers</option>
              {(servers.data?.servers ?? []).map((s) => (
                <option key={s.name} value={s.name}>
                  {s.name} ({s.tools})
                </option>
              ))}
            </select>
            {tags.length > 0 && (
              <select aria-label="Tag" value={tag} onChange={(e) => setFilters({ tag: e.target.value })}>
                <option value="">All tags</option>
                {tags.map((t) => (
                  <option key={t}>{t}</option>
                ))}
              </select>
            )}
            <select aria-label="State" value={state} onChange={(e) => setFilters({ state: e.target.value })}>
              {stateOptions.map(([id, label]) => (
                <option key={id} value={id}>
                  {label}
                </option>
              ))}
            </select>
          </div>
        </div>
        {list.data?.pending && (
          <Note>
            Still starting: {list.data.pending.join(', ')}
          </Note>
        )}
        {list.error && !list.data ? (
          <ErrorNote error={list.error} retry={() => void list.reload()} />
        ) : !list.data ? (
          <Skeleton rows={10} height={52} />
        ) : tools.length === 0 ? (
          filtered ? (
            <EmptyState icon="search" title="No matching tools" actions={<a className="button" href="#/tools">Clear search and filters</a>}>
              Try different words or remove filters.
            </EmptyState>
          ) : (
            <EmptyState icon="tools" title="No tools yet" actions={<a className="button primary" href={href(['servers'], { add: 'form' })}>Add a server</a>}>
              Tools are provided by MCP servers. Add one, or import the servers of other programs on this machine.
            </EmptyState>
          )
        ) : (
          <VirtualList
            items={tools}
            height={60}
            keyOf={(t) => t.name}
            label="Tools"
            resetKey={path}
            row={(t) => <Row tool={t} to={link(t)} current={t.server === server && t.tool === tool} />}
          />
        )}
      </section>
      <section className="split-detail" aria-label="Tool">
        {server && tool ? (
          <Suspense fallback={<Skeleton rows={8} height={52} />}>
            <ToolPage key={`${server}:${tool}`} server={server} tool={tool} back={href(['tools'], { q: text, server: filterServer, tag, state })} />
          </Suspense>
        ) : (
          <EmptyState icon="tools" title="Select a tool">
            See its arguments, run it, and view its definition in the format of each model provider.
          </EmptyState>
        )}
      </section>
    </div>
  );
}

function Row({ tool, to, current }: { tool: Tool; to: string; current: boolean }) {
  return (
    <a className={`tool-row ${current ? 'current' : ''} ${tool.enabled ? '' : 'off'}`} href={to} aria-current={current ? 'true' : undefined}>
      <span className="tool-row-top">
        <span className="tool-row-name ellipsis">{tool.tool}</span>
        {tool.changed && <Badge tone="warn">changed</Badge>}
        {(tool.flags?.length ?? 0) > 0 && <Badge tone="bad">flagged</Badge>}
        {!tool.enabled && <Badge>off</Badge>}
        {tool.approval === 'ask' && <Icon name="shield" size={14} />}
        {tool.stats.circuit === 'open' && <Badge tone="bad">circuit open</Badge>}
        <span className="tool-row-server ellipsis">{tool.server}</span>
      </span>
      <span className="tool-row-text ellipsis">{tool.summary || 'No description'}</span>
    </a>
  );
}
