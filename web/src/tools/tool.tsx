import { useState } from 'react';
import { get, send, type ToolDetails } from '../lib/api';
import { formatDuration, timeAgo, toJson } from '../lib/format';
import { href, useLocalStorage, useQuery } from '../lib/use';
import { MarkdownText } from '../chat/markdown';
import { useMe } from '../me';
import { Icon } from '../ui/icons';
import { JsonView, LongText } from '../ui/json';
import { Badge, Button, Code, CopyButton, ErrorNote, Note, Skeleton, Tabs, useAction, type Tone } from '../ui/ui';
import { ToolRunner } from './run';

type Tab = 'run' | 'about' | 'providers';

export function ToolPage({ server, tool, back }: { server: string; tool: string; back: string }) {
  const path = `/api/tools/${encodeURIComponent(server)}/${encodeURIComponent(tool)}`;
  const details = useQuery<ToolDetails>(path, (s) => get(path, s), 30_000);
  const [tab, setTab] = useState<Tab>('run');
  const t = details.data;
  return (
    <div className="detail">
      <header className="view-head">
        <a className="button quiet square only-narrow" href={back} aria-label="Back to the list">
          <Icon name="back" />
        </a>
        <div className="grow min0">
          <h1 className="ellipsis">{tool}</h1>
          <div className="muted small ellipsis">
            <a href={href(['servers', server])}>{server}</a>
            {t?.title && t.title !== tool && ` · ${t.title}`}
          </div>
        </div>
        <CopyButton text={`${server}:${tool}`} label="Copy tool name" small={false} />
      </header>
      {details.error && !t ? (
        <ErrorNote error={details.error} retry={() => void details.reload()} />
      ) : !t ? (
        <Skeleton rows={8} />
      ) : (
        <div className="detail-scroll">
          <ToolSummary tool={t} />
          <ChangedDefinition tool={t} reload={details.reload} />
          {t.description ? (
            <Description text={t.description} />
          ) : (
            <p className="muted">The server provides no description.</p>
          )}
          <Tabs
            label="About this tool"
            value={tab}
            onChange={setTab}
            tabs={[
              { id: 'run', label: 'Run' },
              { id: 'about', label: 'Definition' },
              { id: 'providers', label: 'Provider formats' },
            ]}
          />
          {tab === 'run' && <ToolRunner tool={t} onDone={() => void details.reload()} />}
          {tab === 'about' && <DefinitionTab tool={t} />}
          {tab === 'providers' && <ProviderFormatsTab tool={t} />}
        </div>
      )}
    </div>
  );
}

function Description({ text }: { text: string }) {
  const [expanded, setExpanded] = useState(false);
  const long = text.length > 700 || text.split('\n').length > 10;
  return (
    <div className="description">
      <MarkdownText text={long && !expanded ? text.slice(0, 500) + '…' : text.slice(0, 50_000)} />
      {long && (
        <Button kind="quiet" small onClick={() => setExpanded(!expanded)} aria-expanded={expanded}>
          {expanded ? 'Show less' : 'Show all'}
        </Button>
      )}
    </div>
  );
}

function ToolSummary({ tool: t }: { tool: ToolDetails }) {
  const a = t.annotations;
  const hints: [string, Tone, string][] = [];
  if (a.readOnlyHint) hints.push(['read-only', 'ok', 'According to the server, this tool changes nothing']);
  if (a.destructiveHint) hints.push(['destructive', 'bad', 'According to the server, this tool may delete or overwrite data']);
  if (a.idempotentHint) hints.push(['idempotent', 'neutral', 'Repeating a call has no additional effect']);
  if (a.openWorldHint) hints.push(['open world', 'neutral', 'The tool interacts with external systems']);
  const s = t.stats;
  return (
    <div className="facts">
      <div className="row tight wrap-row">
        {t.enabled ? <Badge tone="ok">enabled</Badge> : <Badge tone="warn" title={t.reason}>{t.changed ? 'blocked' : 'disabled'}</Badge>}
        {t.approval === 'ask' && <Badge tone="warn" title="A rule requires approval of every call">approval required</Badge>}
        {hints.map(([label, tone, title]) => (
          <Badge key={label} tone={tone} title={title}>
            {label}
          </Badge>
        ))}
        {t.flags?.map((f) => (
          <Badge key={f} tone="bad">
            {f}
          </Badge>
        ))}
        {t.tags?.map((tag) => (
          <a key={tag} className="badge link" href={href(['tools'], { tag })}>
            #{tag}
          </a>
        ))}
      </div>
      <dl className="figures">
        <div>
          <dt>Calls</dt>
          <dd>{s.calls}</dd>
        </div>
        <div>
          <dt>Success rate</dt>
          <dd>{s.calls ? `${Math.round((100 * s.successes) / s.calls)} %` : '–'}</dd>
        </div>
        <div>
          <dt>Mean latency</dt>
          <dd>{s.calls ? formatDuration(s.meanLatencyNs / 1e6) : '–'}</dd>
        </div>
        <div>
          <dt>Last used</dt>
          <dd>{s.lastUse && !s.lastUse.startsWith('0001') ? timeAgo(s.lastUse) : 'never'}</dd>
        </div>
        <div>
          <dt>Circuit</dt>
          <dd className={s.circuit === 'open' ? 'bad-text' : ''}>{s.circuit}</dd>
        </div>
      </dl>
    </div>
  );
}

interface DefinitionChange {
  tool: string;
  fingerprint: string;
  since: string;
  approvedAt: string;
  differences?: { where: string; before?: unknown; after?: unknown }[];
}

const valueText = (v: unknown) => (v === undefined ? '(not set)' : typeof v === 'string' ? v : toJson(v));

/** ChangedDefinition warns if a tool's definition differs from the approved one, and shows the differences. */
function ChangedDefinition({ tool: t, reload }: { tool: ToolDetails; reload: () => Promise<void> }) {
  const me = useMe();
  const [busy, act] = useAction();
  const path = `/api/changes?server=${encodeURIComponent(t.server)}`;
  const changes = useQuery<{ changes: DefinitionChange[] }>(t.changed && me.admin ? path : null, (s) => get(path, s));
  if (!t.changed) return null;
  const change = changes.data?.changes.find((c) => c.tool === t.tool);
  return (
    <div className="note warn">
      <Icon name="alert" />
      <div className="grow min0 stack">
        <p>
          <strong>The definition changed.</strong> It differs from the approved definition{t.enabled ? '' : '; the tool is blocked until an administrator approves the new one'}.
        </p>
        {change?.differences?.map((d) => (
          <div key={d.where}>
            <h4 className="mono">{d.where}</h4>
            <div className="compare">
              <figure aria-label="Approved definition">
                <figcaption className="muted small">Approved definition</figcaption>
                <LongText text={valueText(d.before)} />
              </figure>
              <figure aria-label="Current definition">
                <figcaption className="muted small">Current definition</figcaption>
                <LongText text={valueText(d.after)} />
              </figure>
            </div>
          </div>
        ))}
        {changes.error && <ErrorNote error={changes.error} retry={() => void changes.reload()} />}
        {!me.admin && <p>An administrator can review and approve the differences.</p>}
        {change && (
          <div className="row">
            <Button
              icon="check"
              busy={busy === 'approve'}
              onClick={() => void act('approve', () => send('POST', `/api/servers/${encodeURIComponent(t.server)}/approve`, { tools: { [t.tool]: change.fingerprint } }), `${t.name} approved`).then(reload)}
            >
              Approve current definition
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}

function DefinitionTab({ tool: t }: { tool: ToolDetails }) {
  return (
    <div className="stack">
      <Code lang="signature" text={`${t.tool}(${t.signature})`} />
      <section>
        <h3>Input schema</h3>
        <JsonView value={t.inputSchema} open={3} label="Input schema" />
      </section>
      {t.outputSchema && (
        <section>
          <h3>Output schema</h3>
          <JsonView value={t.outputSchema} open={3} label="Output schema" />
        </section>
      )}
      {t.guidance && (
        <section>
          <h3>Server guidance</h3>
          <MarkdownText text={t.guidance} />
        </section>
      )}
      <section>
        <h3>Definition as received from the server</h3>
        <JsonView value={t.definition} open={1} label="Definition" />
      </section>
    </div>
  );
}

const providers = [
  ['openai', 'OpenAI'],
  ['openai-responses', 'OpenAI Responses'],
  ['anthropic', 'Anthropic'],
  ['gemini', 'Gemini'],
  ['xai', 'xAI'],
  ['bedrock', 'Bedrock'],
  ['ollama', 'Ollama'],
] as const;

interface ProviderTools {
  warnings?: { code: string; tool?: string; message: string; paths?: string[] }[];
  [key: string]: unknown;
}

function ProviderFormatsTab({ tool: t }: { tool: ToolDetails }) {
  const [provider, setProvider] = useLocalStorage('junctor.provider', 'openai');
  const [strict, setStrict] = useState(false);
  const supportsStrict = provider.startsWith('openai');
  const q = new URLSearchParams({ server: t.server, tool: t.tool });
  if (strict && supportsStrict) q.set('strict', 'true');
  const path = `/tools/${encodeURIComponent(provider)}?${q}`;
  const converted = useQuery<ProviderTools>(t.enabled ? path : null, (s) => get(path, s));
  const { warnings, ...body } = converted.data ?? {};
  return (
    <div className="stack">
      <div className="row">
        <select aria-label="Provider" value={provider} onChange={(e) => setProvider(e.target.value)}>
          {providers.map(([id, label]) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
        {supportsStrict && (
          <label className="check">
            <input type="checkbox" checked={strict} onChange={(e) => setStrict(e.target.checked)} /> Strict mode
          </label>
        )}
      </div>
      {!t.enabled ? (
        <Note>Disabled tools are not shown to models.</Note>
      ) : converted.error ? (
        <ErrorNote error={converted.error} retry={() => void converted.reload()} />
      ) : !converted.data ? (
        <Skeleton rows={4} />
      ) : (
        <>
          {warnings?.map((w, i) => (
            <Note key={i} tone="warn">
              {w.message}
              {w.paths && w.paths.length > 0 && <div className="mono small">{w.paths.join(', ')}</div>}
            </Note>
          ))}
          {(warnings?.length ?? 0) === 0 && (
            <p className="muted small row">
              <Icon name="check" size={15} /> The definition was converted without loss.
            </p>
          )}
          <Code lang="json" text={toJson(body)} max={560} />
        </>
      )}
    </div>
  );
}
