import { useState } from 'react';
import { get, send, type GetResponse, type Key, type Profile, type ProfileConfig } from '../lib/api';
import { useQuery } from '../lib/use';
import { useMe } from '../me';
import { NotAdmin } from '../settings/keys';
import { ConfirmDialog, QueryContent } from '../ui/grid';
import { Badge, Button, Code, EmptyState, useAction } from '../ui/ui';
import { EditProfile, ProfileTools } from './edit';

/** Profiles lists, shows, edits and removes profiles. */
export function Profiles() {
  const me = useMe();
  const list = useQuery<GetResponse<'/api/profiles'>>(me.admin ? 'profiles' : null, (s) => get('/api/profiles', s));
  const keys = useQuery<GetResponse<'/api/keys'>>(me.admin ? 'keys' : null, (s) => get('/api/keys', s));
  const [editing, setEditing] = useState<{ profile?: Profile } | null>(null);
  const [removing, setRemoving] = useState<Profile | null>(null);
  const [busy, act] = useAction();
  if (!me.admin) return <NotAdmin subject="Profiles" />;
  const all = list.data?.profiles ?? [];
  const keysOf = (name: string) => (keys.data?.keys ?? []).filter((k) => k.profile === name && !k.revoked);
  return (
    <div className="stack">
      <div className="row">
        <p className="grow muted">A profile is a part of the gateway. An agent, a key or a chat that uses it sees and calls nothing else.</p>
        <Button kind="primary" icon="plus" onClick={() => setEditing({})}>
          New profile
        </Button>
      </div>
      <QueryContent query={list} rows={3}>
        {() =>
          all.length === 0 ? (
            <EmptyState icon="shield" title="No profiles">
              Create one to give an agent a few servers, or a key to somebody who needs one tool.
            </EmptyState>
          ) : (
            all.map((p) => <ProfileCard key={p.name} profile={p} keys={keysOf(p.name)} onEdit={() => setEditing({ profile: p })} onRemove={() => setRemoving(p)} />)
          )
        }
      </QueryContent>
      {editing && (
        <EditProfile
          profile={editing.profile}
          existingNames={all.map((p) => p.name)}
          onClose={() => setEditing(null)}
          onSaved={() => {
            setEditing(null);
            void list.reload();
          }}
        />
      )}
      {removing && (
        <ConfirmDialog
          title={`Remove ${removing.name}?`}
          action="Remove"
          busy={busy === 'remove'}
          onClose={() => setRemoving(null)}
          onConfirm={() =>
            void act('remove', () => send('DELETE', `/api/profiles/${encodeURIComponent(removing.name)}`), `${removing.name} removed`).then((ok) => {
              if (ok) setRemoving(null);
              void list.reload();
            })
          }
        >
          Agents that use it get an error.
          {keysOf(removing.name).length > 0 && ` These keys can then do nothing: ${keysOf(removing.name).map((k) => k.name).join(', ')}.`}
        </ConfirmDialog>
      )}
    </div>
  );
}

function ProfileCard({ profile: p, keys, onEdit, onRemove }: { profile: Profile; keys: Key[]; onEdit: () => void; onRemove: () => void }) {
  // The list does not include the names of tools.
  const details = useQuery<Profile>(`${p.name} ${JSON.stringify(p.config)}`, (s) => get(`/api/profiles/${encodeURIComponent(p.name)}`, s));
  return (
    <section className="card" aria-label={p.name}>
      <div className="row">
        <h2 className="grow">{p.name}</h2>
        <Button small kind="quiet" icon="edit" aria-label={`Edit ${p.name}`} onClick={onEdit} />
        <Button small kind="quiet" icon="trash" aria-label={`Remove ${p.name}`} onClick={onRemove} />
      </div>
      {p.description && <p>{p.description}</p>}
      <div className="row wrap">
        {profileTerms(p.config ?? {}).map((f) => (
          <Badge key={f}>{f}</Badge>
        ))}
      </div>
      <QueryContent query={details} rows={1}>{(w) => <ProfileTools profile={w} />}</QueryContent>
      {keys.length > 0 && <p className="muted">Keys bound to it: {keys.map((k) => k.name).join(', ')}</p>}
      <Code lang="shell" text={`junctor connect --profile ${p.name}`} />
    </section>
  );
}

/** profileTerms returns the settings of a profile as short texts. */
function profileTerms(c: ProfileConfig): string[] {
  const out: string[] = [];
  for (const key of ['servers', 'tools', 'tags'] as const) if (c[key]) out.push(`${key}: ${c[key].join(', ') || 'none'}`);
  if (c.mode) out.push(`mode: ${c.mode}`);
  if (c.approval) out.push('each call is approved');
  if (c.rate) out.push(`${c.rate.calls} calls in ${(c.rate.perMs ?? 60_000) / 1000} s`);
  if (c.instructions) out.push('instructions');
  return out;
}
