import { useState } from 'react';
import { get, type Status } from '../lib/api';
import { useQuery } from '../lib/use';
import { Button, Dialog, Field } from '../ui/ui';
import type { Preferences } from './protocol';

/** hasPreferences reports whether a conversation has preferences that differ from the defaults. */
export function hasPreferences(p: Preferences): boolean {
  return Boolean(p.systemPrompt) || p.temperature !== undefined || (p.servers?.length ?? 0) > 0 || Boolean(p.profile);
}

/** PreferencesDialog edits the system prompt, the temperature, the profile and the servers of one conversation; onSave returns false when there is no connection. */
export function PreferencesDialog({ value, status, onSave, onClose }: { value: Preferences; status?: Status; onSave: (p: Preferences) => boolean; onClose: () => void }) {
  const [prompt, setPrompt] = useState(value.systemPrompt ?? '');
  const [temperature, setTemperature] = useState(value.temperature === undefined ? '' : String(value.temperature));
  const serverNames = (status?.servers ?? []).filter((s) => s.status !== 'disabled').map((s) => s.name);
  const [disabledServers, setDisabledServers] = useState<Set<string>>(() => new Set(value.servers?.length ? serverNames.filter((s) => !value.servers!.includes(s)) : []));
  const [profile, setProfile] = useState(value.profile ?? '');
  const profiles = useQuery<{ profiles: { name: string }[] }>('profiles', (s) => get('/api/profiles', s)).data?.profiles.map((p) => p.name) ?? [];
  const [saveFailed, setSaveFailed] = useState(false);
  const number = Number(temperature);
  const invalidTemperature = temperature.trim() !== '' && !(number >= 0 && number <= 2);
  const noServers = serverNames.length > 0 && serverNames.every((s) => disabledServers.has(s));
  return (
    <Dialog title="Settings of this chat" open onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          if (invalidTemperature || noServers) return;
          const saved = onSave({
            ...(prompt.trim() && { systemPrompt: prompt.trim() }),
            ...(temperature.trim() !== '' && { temperature: number }),
            ...(profile && { profile }),
            ...(disabledServers.size > 0 && { servers: serverNames.filter((s) => !disabledServers.has(s)) }),
          });
          if (saved) onClose();
          setSaveFailed(!saved);
        }}
      >
        <Field label="System prompt" hint="What the model is told before this conversation. Empty: the model's own.">
          {(id) => <textarea id={id} rows={4} value={prompt} onChange={(e) => setPrompt(e.target.value)} />}
        </Field>
        <Field label="Temperature" hint={invalidTemperature ? <span className="bad-text">A number from 0 to 2</span> : "From 0 (strict) to 2 (free). Empty: the model's own."}>
          {(id) => <input id={id} inputMode="decimal" value={temperature} aria-invalid={invalidTemperature || undefined} onChange={(e) => setTemperature(e.target.value)} />}
        </Field>
        {(profiles.length > 0 || profile) && (
          <Field label="Profile" hint="The part of the gateway that this chat uses">
            {(id) => (
              <select id={id} value={profile} onChange={(e) => setProfile(e.target.value)}>
                <option value="">none</option>
                {[...new Set([...profiles, ...(profile ? [profile] : [])])].map((p) => (
                  <option key={p}>{p}</option>
                ))}
              </select>
            )}
          </Field>
        )}
        <fieldset className="choices">
          <legend>Servers</legend>
          {serverNames.length === 0 && <p className="muted small">There are no servers.</p>}
          {serverNames.map((s) => (
            <label key={s} className="check">
              <input
                type="checkbox"
                checked={!disabledServers.has(s)}
                onChange={(e) =>
                  setDisabledServers((o) => {
                    const next = new Set(o);
                    if (e.target.checked) next.delete(s);
                    else next.add(s);
                    return next;
                  })
                }
              />{' '}
              {s}
            </label>
          ))}
          {noServers && <p className="bad-text small">Choose at least one.</p>}
        </fieldset>
        {saveFailed && (
          <p className="bad-text small" role="alert">
            Not connected. Try again when the connection is restored.
          </p>
        )}
        <div className="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={invalidTemperature || noServers}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
