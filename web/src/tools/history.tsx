import { useState } from 'react';
import { get, type Call, type GetResponse } from '../lib/api';
import { formatDateTime, formatDuration, timeAgo } from '../lib/format';
import { href, useQuery } from '../lib/use';
import { statusLabel, statusTone } from '../activity/call';
import { Badge, Button, useAction, useToast } from '../ui/ui';
import { presetsOf, setPreset } from './presets';

/** RunHistory lists the presets and the latest calls of a tool, whose arguments can be reused. */
export function RunHistory({ server, tool, value, runs, onUse }: { server: string; tool: string; value: unknown; runs: number; onUse: (args: unknown) => void }) {
  const name = `${server}:${tool}`;
  const toast = useToast();
  const [busy, act] = useAction();
  const [presets, setPresets] = useState(() => presetsOf(name));
  const [presetName, setPresetName] = useState('');
  const latestCalls = useQuery<GetResponse<'/api/calls'>>(`runs ${name} ${runs}`, (s) => get(`/api/calls?${new URLSearchParams({ server, tool, limit: '20' })}`, s));
  const calls = [...(latestCalls.data?.calls ?? [])].sort((a, b) => b.seq - a.seq);
  const save = () => {
    if (!setPreset(name, presetName.trim(), value ?? {})) toast('This browser keeps no presets: its storage is disabled or full.');
    setPresets(presetsOf(name));
    setPresetName('');
  };
  const loadArguments = (c: Call) =>
    act(c.id, async () => {
      const { arguments: args } = await get<Call>(`/api/calls/${encodeURIComponent(c.id)}`);
      if (typeof args === 'string') toast('The call log keeps only a part of these arguments.');
      else onUse(args ?? {});
    });
  return (
    <section className="stack earlier" aria-label="Presets and earlier runs">
      <h3>Presets</h3>
      <div className="row wrap-row tight">
        {Object.keys(presets).map((p) => (
          <span key={p} className="preset">
            <Button small onClick={() => onUse(presets[p])}>
              {p}
            </Button>
            <Button
              small
              kind="quiet"
              icon="close"
              aria-label={`Delete the preset ${p}`}
              onClick={() => {
                setPreset(name, p, undefined);
                setPresets(presetsOf(name));
              }}
            />
          </span>
        ))}
        <form
          className="row tight"
          onSubmit={(e) => {
            e.preventDefault();
            if (presetName.trim()) save();
          }}
        >
          <input className="preset-name" aria-label="Name of the preset" placeholder="Save these arguments as…" value={presetName} maxLength={60} onChange={(e) => setPresetName(e.target.value)} />
          <Button small type="submit" disabled={!presetName.trim()}>
            Save
          </Button>
        </form>
      </div>
      {calls.length > 0 && (
        <>
          <h3>Earlier runs</h3>
          <ul className="plain-list runs-list">
            {calls.slice(0, 20).map((c) => (
              <li key={c.seq} className="row">
                <a className="small" href={href(['activity', c.id])} title={formatDateTime(c.time)}>
                  {timeAgo(c.time)}
                </a>
                <Badge tone={statusTone[c.status]}>{c.status === 'ok' ? 'ok' : c.code || statusLabel[c.status]}</Badge>
                <span className="muted small grow">
                  {formatDuration(c.durationMs)} · {c.face}
                </span>
                <Button small kind="quiet" busy={busy === c.id} onClick={() => void loadArguments(c)}>
                  Use arguments
                </Button>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
