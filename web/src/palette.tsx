import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent } from 'react';
import { views } from './app';
import { get, type GetResponse, type ToolList } from './lib/api';
import { href, navigate, useDebounced, useQuery } from './lib/use';
import { Icon, type IconName } from './ui/icons';

interface SearchHit {
  icon: IconName;
  label: string;
  hint: string;
  to: string;
}

/** Palette opens the quick search for views, servers, chats and tools: Ctrl K or ⌘K. */
export function Palette() {
  const [open, setOpen] = useState(false);
  // A layout effect, so that the shortcut works as soon as the page is painted.
  useLayoutEffect(() => {
    const handleShortcut = (e: globalThis.KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault();
        setOpen((o) => !o);
      }
    };
    const find = () => setOpen(true);
    window.addEventListener('keydown', handleShortcut);
    window.addEventListener('junctor:find', find);
    return () => {
      window.removeEventListener('keydown', handleShortcut);
      window.removeEventListener('junctor:find', find);
    };
  }, []);
  return open ? <PaletteDialog onClose={() => setOpen(false)} /> : null;
}

function PaletteDialog({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [activeIndex, setActiveIndex] = useState(0);
  const query = useDebounced(text.trim(), 100);
  const tools = useQuery<ToolList>('find ' + query, (s) => get(`/api/tools?limit=12${query ? `&query=${encodeURIComponent(query)}` : ''}`, s));
  const servers = useQuery<GetResponse<'/api/servers'>>('find servers', (s) => get('/api/servers', s));
  const chats = useQuery<GetResponse<'/api/sessions'>>(query ? 'find chats ' + query : null, (s) => get(`/api/sessions?limit=5&q=${encodeURIComponent(query)}`, s));
  useEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
  }, []);
  const filter = text.trim().toLowerCase();
  const hits: SearchHit[] = [
    ...views.filter((v) => v.label.toLowerCase().includes(filter)).map((v) => ({ icon: v.icon, label: v.label, hint: 'view', to: `#/${v.id}` })),
    ...(servers.data?.servers ?? []).filter((s) => filter && s.name.toLowerCase().includes(filter)).slice(0, 5).map((s) => ({ icon: 'servers' as const, label: s.name, hint: 'server', to: href(['servers', s.name]) })),
    ...(filter ? (chats.data?.sessions ?? []) : []).map((s) => ({ icon: 'chat' as const, label: s.title || 'Conversation', hint: 'chat', to: href(['chat', s.id]) })),
    ...(tools.data?.tools ?? []).map((x) => ({ icon: 'tools' as const, label: x.tool, hint: x.server, to: href(['tools', x.server, x.tool]) })),
  ];
  const current = Math.min(activeIndex, Math.max(0, hits.length - 1));
  const pick = (h: SearchHit | undefined) => {
    if (!h) return;
    onClose();
    navigate(h.to);
  };
  const handleKeyDown = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      setActiveIndex((current + (e.key === 'ArrowDown' ? 1 : -1) + hits.length) % Math.max(1, hits.length));
    } else if (e.key === 'Enter') {
      e.preventDefault();
      pick(hits[current]);
    }
  };
  return (
    <dialog ref={dialog} className="palette" aria-label="Find" onCancel={onClose} onClose={onClose} onMouseDown={(e) => e.target === dialog.current && onClose()}>
      <div className="searchbox">
        <Icon name="search" size={18} />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="finder"
          aria-activedescendant={hits[current] ? `finder-${current}` : undefined}
          aria-label="Find a tool, server, chat or view"
          placeholder="Find a tool, server, chat or view"
          autoFocus
          value={text}
          onChange={(e) => (setText(e.target.value), setActiveIndex(0))}
          onKeyDown={handleKeyDown}
        />
      </div>
      <ul id="finder" role="listbox" aria-label="Search results">
        {hits.map((h, i) => (
          <li key={h.to} id={`finder-${i}`} role="option" aria-selected={i === current} onMouseEnter={() => setActiveIndex(i)} onClick={() => pick(h)}>
            <Icon name={h.icon} size={16} />
            <span className="grow ellipsis">{h.label}</span>
            <span className="muted small">{h.hint}</span>
          </li>
        ))}
        {hits.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled="true" className="muted">
            No matches
          </li>
        )}
      </ul>
    </dialog>
  );
}
