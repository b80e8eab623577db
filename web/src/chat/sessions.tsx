import { useState } from 'react';
import { get, request, send, type ChatSession, type GetResponse } from '../lib/api';
import { download, timeAgo } from '../lib/format';
import { href, navigate, parseRoute, useDebounced, useQuery, type QueryResult } from '../lib/use';
import { Icon } from '../ui/icons';
import { ConfirmDialog } from '../ui/grid';
import { Badge, Button, Dialog, ErrorNote, Field, Skeleton, StatusDot, useAction } from '../ui/ui';

/** sessionsPageSize is the number of conversations in one page of the list. */
export const sessionsPageSize = 100;

/** Sessions is the side bar of conversations. */
export function Sessions({ list, current, onNew, onPick }: { list: QueryResult<GetResponse<'/api/sessions'>>; current: string; onNew: () => void; onPick: () => void }) {
  const [renaming, setRenaming] = useState<ChatSession | null>(null);
  const [removing, setRemoving] = useState<ChatSession | null>(null);
  const [menuSessionId, setMenuSessionId] = useState<string | null>(null);
  const [older, setOlder] = useState<ChatSession[]>([]);
  const [allLoaded, setAllLoaded] = useState(false);
  const [busy, act] = useAction();
  const [text, setText] = useState('');
  const query = useDebounced(text.trim(), 200);
  const matches = useQuery<GetResponse<'/api/sessions'>>(query ? 'sessions ' + query : null, (s) => get(`/api/sessions?q=${encodeURIComponent(query)}`, s));
  const newest = list.data?.sessions ?? [];
  const known = new Set(newest.map((s) => s.id));
  const all = [...newest, ...older.filter((s) => !known.has(s.id))];
  const sessions = query ? (matches.data?.sessions ?? []) : [...all.filter((s) => s.pinned), ...all.filter((s) => !s.pinned)];
  const pin = (s: ChatSession) => act('pin', () => send('PATCH', `/api/sessions/${encodeURIComponent(s.id)}`, { pinned: !s.pinned })).then(() => list.reload());
  const loadOlder = () =>
    act('older', async () => {
      const before = all.at(-1)?.updated ?? '';
      const { sessions: next } = await get<GetResponse<'/api/sessions'>>(`/api/sessions?limit=${sessionsPageSize}&before=${encodeURIComponent(before)}`);
      setOlder((o) => [...o, ...next]);
      if (next.length < sessionsPageSize) setAllLoaded(true);
    });
  // A plain link could not send the session header.
  const exportSession = (s: ChatSession, format: 'md' | 'json') =>
    act('save', async () => {
      const res = await request(`/api/sessions/${encodeURIComponent(s.id)}/export?format=${format}`);
      const name = /filename="([^"]+)"/.exec(res.headers.get('Content-Disposition') ?? '')?.[1] ?? `conversation.${format}`;
      download(name, await res.blob(), res.headers.get('Content-Type') ?? '');
    });
  return (
    <nav className="sessions" aria-label="Conversations">
      <div className="sessions-head">
        <Button kind="primary" icon="plus" onClick={onNew}>
          New chat
        </Button>
        <input type="search" aria-label="Search conversations" placeholder="Search" value={text} onChange={(e) => setText(e.target.value)} />
      </div>
      {query && matches.error && <ErrorNote error={matches.error} />}
      {list.error && !list.data ? (
        <ErrorNote error={list.error} retry={() => void list.reload()} />
      ) : !list.data ? (
        <Skeleton rows={5} height={38} />
      ) : sessions.length === 0 ? (
        <p className="muted small pad">{query ? (matches.loading ? 'Searching…' : 'No matches') : 'Your conversations appear here.'}</p>
      ) : (
        <ul>
          {sessions.map((s) => (
            <li key={s.id} className={s.id === current ? 'current' : ''} onKeyDown={(e) => e.key === 'Escape' && setMenuSessionId(null)}>
              <a href={href(['chat', s.id])} aria-current={s.id === current ? 'page' : undefined} onClick={onPick}>
                <span className="session-title">
                  {s.pinned && <Icon name="pin" size={13} />} {s.title || 'Conversation'}
                </span>
                {s.match ? (
                  <span className="muted small session-match">{s.match}</span>
                ) : s.waiting ? (
                  <Badge tone="warn">needs your answer</Badge>
                ) : (
                  <span className="muted small">
                    {s.active && <StatusDot tone="accent" pulse />} {s.active ? 'replying' : timeAgo(s.updated)}
                  </span>
                )}
              </a>
              <Button kind="quiet" small icon="more" aria-label={`Actions for ${s.title || 'conversation'}`} aria-expanded={menuSessionId === s.id} onClick={() => setMenuSessionId(menuSessionId === s.id ? null : s.id)} />
              {menuSessionId === s.id && (
                <div className="session-menu" role="group" aria-label="Actions">
                  <Button kind="quiet" small icon="pin" onClick={() => (void pin(s), setMenuSessionId(null))}>
                    {s.pinned ? 'Unpin' : 'Pin'}
                  </Button>
                  <Button kind="quiet" small icon="edit" onClick={() => (setRenaming(s), setMenuSessionId(null))}>
                    Rename
                  </Button>
                  <Button kind="quiet" small onClick={() => (void exportSession(s, 'md'), setMenuSessionId(null))}>
                    Markdown
                  </Button>
                  <Button kind="quiet" small onClick={() => (void exportSession(s, 'json'), setMenuSessionId(null))}>
                    JSON
                  </Button>
                  <Button kind="quiet" small icon="trash" onClick={() => (setRemoving(s), setMenuSessionId(null))}>
                    Delete
                  </Button>
                </div>
              )}
            </li>
          ))}
        </ul>
      )}
      {newest.length >= sessionsPageSize && !allLoaded && !query && (
        <div className="row center pad">
          <Button small kind="quiet" busy={busy === 'older'} onClick={() => void loadOlder()}>
            Show older
          </Button>
        </div>
      )}
      {renaming && <RenameDialog session={renaming} onClose={() => setRenaming(null)} reload={list.reload} />}
      {removing && (
        <DeleteDialog
          session={removing}
          onClose={() => setRemoving(null)}
          onDone={() => {
            // The user may have navigated elsewhere before the response.
            const [view, shown] = parseRoute(location.hash).parts;
            if (view === 'chat' && shown === removing.id) navigate('#/chat');
            setOlder((o) => o.filter((s) => s.id !== removing.id));
            setRemoving(null);
            void list.reload();
          }}
        />
      )}
    </nav>
  );
}

function RenameDialog({ session, onClose, reload }: { session: ChatSession; onClose: () => void; reload: () => Promise<void> }) {
  const [title, setTitle] = useState(session.title);
  const [busy, act] = useAction();
  const submit = async () => {
    if (await act('rename', () => send('PATCH', `/api/sessions/${encodeURIComponent(session.id)}`, { title }))) {
      onClose();
      void reload();
    }
  };
  return (
    <Dialog title="Rename conversation" open onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void submit();
        }}
      >
        <Field label="Title">{(id) => <input id={id} value={title} maxLength={200} autoFocus onChange={(e) => setTitle(e.target.value)} />}</Field>
        <div className="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy === 'rename'} disabled={!title.trim()}>
            Rename
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function DeleteDialog({ session, onClose, onDone }: { session: ChatSession; onClose: () => void; onDone: () => void }) {
  const [busy, act] = useAction();
  return (
    <ConfirmDialog
      title="Delete conversation?"
      action="Delete"
      busy={busy === 'delete'}
      onClose={onClose}
      onConfirm={() => void act('delete', () => send('DELETE', `/api/sessions/${encodeURIComponent(session.id)}`)).then((ok) => ok && onDone())}
    >
      “{session.title || 'Conversation'}” and all its messages are permanently deleted.
    </ConfirmDialog>
  );
}
