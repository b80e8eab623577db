import { useState } from 'react';
import { send, type Profile } from '../lib/api';
import { plural } from '../lib/format';
import { useDebounced, useQuery } from '../lib/use';
import { QueryContent } from '../ui/grid';
import { Button, Dialog, Field, useAction } from '../ui/ui';
import { configFromDraft, draftFromProfile, groupByServer, type ProfileDraft } from './profile';

/** EditProfile edits or creates a profile, with a preview of its tools. */
export function EditProfile({ profile, existingNames, onClose, onSaved }: { profile?: Profile; existingNames: string[]; onClose: () => void; onSaved: () => void }) {
  const [draft, setDraft] = useState<ProfileDraft>(() => draftFromProfile(profile));
  const [busy, act] = useAction();
  const update = (change: Partial<ProfileDraft>) => setDraft((before) => ({ ...before, ...change }));
  const config = configFromDraft(draft, profile?.config);
  const nameTaken = !profile && existingNames.includes(draft.name.trim());
  const textField = (key: 'servers' | 'tags' | 'tools' | 'description', label: string, hint: string, placeholder: string) => (
    <Field label={label} hint={hint}>
      {(id) => <input id={id} className={key === 'description' ? '' : 'mono'} value={draft[key]} autoComplete="off" spellCheck={key === 'description'} placeholder={placeholder} onChange={(e) => update({ [key]: e.target.value })} />}
    </Field>
  );
  return (
    <Dialog title={profile ? `Edit ${profile.name}` : 'New profile'} open onClose={onClose} wide>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void act('save', () => send('PUT', `/api/profiles/${encodeURIComponent(draft.name.trim())}`, config), `${draft.name.trim()} saved`).then((ok) => ok && onSaved());
        }}
      >
        {!profile && (
          <Field label="Name" hint={nameTaken ? 'A profile has this name already.' : 'Used in addresses, such as /profiles/coding/mcp'}>
            {(id) => <input id={id} value={draft.name} required autoFocus pattern="[A-Za-z0-9_\-]{1,64}" placeholder="coding" autoComplete="off" onChange={(e) => update({ name: e.target.value })} />}
          </Field>
        )}
        {textField('description', 'Description', 'What it is for', '')}
        {textField('servers', 'Servers', 'Names or patterns, separated by commas; ! leaves out. Empty: all.', 'github, fs*')}
        {textField('tools', 'Tools', 'Patterns over server:tool; ! leaves out. Empty: all tools of these servers.', '*, !*:delete_*')}
        {textField('tags', 'Tags', 'A tool needs one of these, of its own or of its server. Empty: any.', 'crm')}
        <ProfilePreview config={JSON.stringify(config)} />
        <Field label="What MCP clients see">
          {(id) => (
            <select id={id} value={draft.mode} onChange={(e) => update({ mode: e.target.value })}>
              <option value="">as configured for all</option>
              <option value="meta">the meta-tools</option>
              <option value="direct">all tools directly</option>
              <option value="code">search and scripts</option>
            </select>
          )}
        </Field>
        <Field label="Instructions" hint="What agents are told when they connect">
          {(id) => <textarea id={id} rows={3} value={draft.instructions} onChange={(e) => update({ instructions: e.target.value })} />}
        </Field>
        <label className="check">
          <input type="checkbox" checked={draft.ask} onChange={(e) => update({ ask: e.target.checked })} /> A person approves each call
        </label>
        <div className="row wrap">
          <Field label="Calls per caller" hint="Empty: no limit">
            {(id) => <input id={id} type="number" min={1} value={draft.calls} onChange={(e) => update({ calls: e.target.value })} />}
          </Field>
          <Field label="Period in seconds" hint="60 is a minute">
            {(id) => <input id={id} type="number" min={0.001} step="any" required={draft.calls !== ''} value={draft.seconds} onChange={(e) => update({ seconds: e.target.value })} />}
          </Field>
        </div>
        <div className="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy === 'save'} disabled={!draft.name.trim() || nameTaken}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** ProfilePreview shows the tools of a profile configuration, given as JSON, without saving it. */
function ProfilePreview({ config }: { config: string }) {
  const debouncedConfig = useDebounced(config, 200);
  const preview = useQuery<Profile>(debouncedConfig, (s) => send('POST', '/api/profiles/preview', JSON.parse(debouncedConfig), s));
  return (
    <div aria-live="polite" aria-busy={preview.loading}>
      <QueryContent query={preview} rows={1}>{(p) => <ProfileTools profile={p} />}</QueryContent>
    </div>
  );
}

/** ProfileTools shows the tools that can be called with a profile, by server. */
export function ProfileTools({ profile }: { profile: Profile }) {
  const groups = groupByServer(profile.tools ?? []);
  return (
    <details>
      <summary>
        {plural(profile.toolCount, 'tool')} of {plural(profile.servers.length, 'server')} can be used
      </summary>
      {groups.length === 0 && <p className="muted">No tool. The servers may not be connected.</p>}
      <dl>
        {groups.map(([server, tools]) => (
          <div key={server}>
            <dt>
              <strong>{server}</strong> <span className="muted">{tools.length}</span>
            </dt>
            <dd className="mono small wrap">{tools.join(', ')}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
