import { useId, useMemo, useState } from 'react';
import { get, send, type Configuration, type Setting } from '../lib/api';
import { toJson } from '../lib/format';
import { useQuery } from '../lib/use';
import { useMe } from '../me';
import { Table } from '../ui/grid';
import { Badge, Button, CopyButton, EmptyState, ErrorNote, Note, Skeleton, useAction } from '../ui/ui';
import { NotAdmin } from './keys';
import { getPath, settingGroups, type SettingSpec } from './schema';
import { defaultText, SettingControl } from './value';

/** useConfiguration reads the configuration and its schema. */
export function useConfiguration() {
  const me = useMe();
  const config = useQuery<Configuration>(me.admin ? 'config' : null, (s) => get('/api/config', s));
  const schema = useQuery<Record<string, unknown>>(me.admin ? 'schema' : null, (s) => get('/api/config/schema', s));
  const groups = useMemo(() => (schema.data ? settingGroups(schema.data) : undefined), [schema.data]);
  const retry = () => void Promise.all([config.reload(), schema.reload()]);
  return { admin: me.admin, config, groups, error: config.error ?? schema.error, retry };
}

export function ConfigFileNote({ place }: { place: Configuration['place'] }) {
  return (
    <p className="wrap">
      {place.path ? (
        <>
          File: <code>{place.path}</code> <span className="muted">({place.how})</span>
        </>
      ) : (
        <>
          There is no configuration file; all settings have their default values. The first change creates <code>{place.new}</code>.
        </>
      )}
    </p>
  );
}

export function RestartNote({ keys }: { keys: string[] }) {
  if (keys.length === 0) return null;
  return (
    <Note tone="warn">
      Restart the gateway to apply {keys.map((k, i) => [i > 0 ? ', ' : '', <code key={k}>{k}</code>])}.
    </Note>
  );
}

/** Config shows the configuration as a form, with the file beside it, or as a list of the values in effect. */
export function Config() {
  const { admin, config, groups, error, retry } = useConfiguration();
  const [showEffective, setShowEffective] = useState(false);
  const [changes, setChanges] = useState<Record<string, unknown>>({});
  const [formVersion, setFormVersion] = useState(0);
  const [text, setText] = useState('');
  const [onlyChanged, setOnlyChanged] = useState(false);
  const [busy, act] = useAction();
  if (!admin) return <NotAdmin subject="The configuration" />;
  if (error) return <ErrorNote error={error} retry={retry} />;
  if (!config.data || !groups) return <Skeleton rows={8} />;
  const { place, values, settings, restart } = config.data;
  const pending = Object.keys(changes).length;
  const save = () =>
    act('save', () => send('PATCH', '/api/config', { set: Object.fromEntries(Object.entries(changes).map(([k, v]) => [k, v ?? null])) }), 'Saved').then((ok) => {
      if (!ok) return;
      setChanges({});
      setFormVersion((n) => n + 1);
      void config.reload();
    });
  return (
    <div className="stack">
      <ConfigFileNote place={place} />
      <RestartNote keys={restart} />
      <div className="row wrap-row">
        <input type="search" className="grow" aria-label="Search settings" placeholder="Search settings" value={text} onChange={(e) => setText(e.target.value)} />
        <label className="check">
          <input type="checkbox" checked={onlyChanged} onChange={(e) => setOnlyChanged(e.target.checked)} /> Only changed settings
        </label>
        <div className="segmented" role="group" aria-label="Show">
          <button type="button" aria-pressed={!showEffective} onClick={() => setShowEffective(false)}>
            Edit
          </button>
          <button type="button" aria-pressed={showEffective} onClick={() => setShowEffective(true)}>
            In effect
          </button>
        </div>
      </div>
      {showEffective ? (
        <EffectiveSettings settings={settings} text={text} onlyChanged={onlyChanged} />
      ) : (
        <div className="config-form">
          <form
            key={formVersion}
            onSubmit={(e) => {
              e.preventDefault();
              void save();
            }}
          >
            {groups.map((g) => {
              const shown = g.specs.filter((s) => {
                const key = [g.key, s.key].filter(Boolean).join('.');
                if (onlyChanged && getPath(values, key) === undefined && !(key in changes)) return false;
                return !text || `${key} ${s.description}`.toLowerCase().includes(text.toLowerCase());
              });
              if (shown.length === 0) return null;
              return (
                <section key={g.key} className="config-group">
                  <h2>{g.key || 'general'}</h2>
                  <p className="muted small">{g.description}</p>
                  {shown.map((s) => {
                    const key = [g.key, s.key].filter(Boolean).join('.');
                    return (
                      <SettingRow
                        key={key}
                        name={key}
                        spec={s}
                        value={key in changes ? changes[key] : getPath(values, key)}
                        edited={key in changes}
                        source={settings.find((e) => e.key === key)}
                        onChange={(v) =>
                          setChanges((c) => {
                            const { [key]: _, ...rest } = c;
                            return toJson(v ?? null) === toJson(getPath(values, key) ?? null) ? rest : { ...rest, [key]: v };
                          })
                        }
                      />
                    );
                  })}
                </section>
              );
            })}
            {pending > 0 && (
              <div className="save-bar" role="region" aria-label="Unsaved changes">
                <span className="grow">
                  {pending} unsaved {pending === 1 ? 'change' : 'changes'}
                </span>
                <Button
                  onClick={() => {
                    setChanges({});
                    setFormVersion((n) => n + 1);
                  }}
                >
                  Discard
                </Button>
                <Button kind="primary" type="submit" busy={busy === 'save'}>
                  Save
                </Button>
              </div>
            )}
          </form>
          <aside className="config-file" aria-label="The file">
            <div className="code">
              <div className="code-head">
                <span>{place.path ? place.path.split('/').at(-1) : 'no file yet'}</span>
                <CopyButton text={config.data.text} label="Copy the file" />
              </div>
              <pre tabIndex={0} aria-label="The configuration file">
                <code>{config.data.text || '{}'}</code>
              </pre>
            </div>
          </aside>
        </div>
      )}
    </div>
  );
}

/** SettingRow is one setting: its description, its control and the source of its value. */
function SettingRow({ name, spec, value, edited, source, onChange }: { name: string; spec: SettingSpec; value: unknown; edited: boolean; source?: Setting; onChange: (v: unknown) => void }) {
  const id = useId();
  const overridden = source && !['default', 'file'].includes(source.source);
  return (
    <div className={`setting ${spec.kind === 'objects' ? 'tall' : ''}`}>
      <div className="setting-text">
        <label htmlFor={id} className="mono">
          {name}
        </label>{' '}
        {spec.restart && <Badge title="A change takes effect with the next start of the gateway">needs a restart</Badge>} {edited && <Badge tone="accent">changed</Badge>}
        <div className="muted small">
          {spec.description}
          {defaultText(spec) && ` Default: ${defaultText(spec)}.`}
        </div>
        {overridden && (
          <div className="small">
            In effect: <code>{formatValue(source.value)}</code> from {source.from}, which overrides the file.
          </div>
        )}
      </div>
      <SettingControl spec={spec} value={value} onChange={onChange} id={id} label={spec.kind === 'objects' ? name : undefined} />
    </div>
  );
}

/** EffectiveSettings lists every value and its source. */
function EffectiveSettings({ settings, text, onlyChanged }: { settings: Setting[]; text: string; onlyChanged: boolean }) {
  const groups = useMemo(() => {
    const t = text.toLowerCase();
    const out = new Map<string, Setting[]>();
    for (const s of settings) {
      if (onlyChanged && s.source === 'default') continue;
      if (t && !`${s.key} ${toJson(s.value, 0)} ${s.from}`.toLowerCase().includes(t)) continue;
      const parts = s.key.split('.');
      const group = parts[0] === 'mcpServers' ? parts.slice(0, 2).join('.') : (parts[0] ?? '');
      const g = out.get(group);
      if (g) g.push(s);
      else out.set(group, [s]);
    }
    return [...out];
  }, [settings, text, onlyChanged]);
  if (groups.length === 0) return <EmptyState icon="search" title="No matches" />;
  return groups.map(([group, list]) => (
    <section key={group} className="config-group">
      <h2>{group}</h2>
      <Table label={`Settings of ${group}`} className="config">
        {list.map((s) => (
          <tr key={s.key}>
            <th scope="row" className="mono">
              {s.key.slice(group.length + 1) || s.key}
            </th>
            <td className="mono wrap">{formatValue(s.value)}</td>
            <td className={s.source === 'default' ? 'muted' : 'accent-text'}>{s.from}</td>
          </tr>
        ))}
      </Table>
    </section>
  ));
}

function formatValue(v: unknown): string {
  if (v === '' || v === null || v === undefined) return '–';
  if (Array.isArray(v) && v.every((x) => typeof x === 'string')) return v.join(', ') || '–';
  return typeof v === 'string' ? v : toJson(v, 0);
}
