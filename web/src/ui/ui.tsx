import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
  type ButtonHTMLAttributes,
  type KeyboardEvent,
  type ReactNode,
} from 'react';
import type { ApiError } from '../lib/api';
import { copyToClipboard } from '../lib/format';
import { Icon, type IconName } from './icons';

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  icon?: IconName;
  kind?: 'primary' | 'plain' | 'quiet' | 'danger';
  busy?: boolean;
  small?: boolean;
}

export function Button({ icon, kind = 'plain', busy, small, children, className = '', ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled || busy}
      aria-busy={busy || undefined}
      className={`button ${kind} ${small ? 'small' : ''} ${children ? '' : 'square'} ${className}`}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : icon && <Icon name={icon} size={small ? 15 : 17} />}
      {children}
    </button>
  );
}

export function CopyButton({ text, label = 'Copy', small = true }: { text: string | (() => string); label?: string; small?: boolean }) {
  const [done, setDone] = useState(false);
  return (
    <Button
      kind="quiet"
      small={small}
      icon={done ? 'check' : 'copy'}
      aria-label={done ? 'Copied' : label}
      title={label}
      onClick={async () => {
        if (await copyToClipboard(typeof text === 'string' ? text : text())) {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        }
      }}
    />
  );
}

export function Badge({ tone = 'neutral', children, title }: { tone?: Tone; children: ReactNode; title?: string }) {
  return (
    <span className={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}
export type Tone = 'neutral' | 'ok' | 'warn' | 'bad' | 'accent';

export function StatusDot({ tone, pulse }: { tone: Tone; pulse?: boolean }) {
  return <span className={`dot ${tone} ${pulse ? 'pulse' : ''}`} aria-hidden="true" />;
}

export function Tabs<T extends string>({
  tabs,
  value,
  onChange,
  label,
}: {
  tabs: { id: T; label: ReactNode }[];
  value: T;
  onChange: (id: T) => void;
  label: string;
}) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // If the tabs scroll, scroll to the selected one.
    const box = list.current;
    const tab = box?.querySelector('[aria-selected=true]')?.getBoundingClientRect();
    if (!box || !tab) return;
    const { left, right } = box.getBoundingClientRect();
    if (tab.left < left || tab.right > right) box.scrollLeft += tab.left - left - (right - left - tab.width) / 2;
  }, [value]);
  const handleKeyDown = (e: KeyboardEvent<HTMLDivElement>) => {
    const at = tabs.findIndex((t) => t.id === value);
    const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next) {
      onChange(next.id);
      (e.currentTarget.children[tabs.indexOf(next)] as HTMLElement | undefined)?.focus();
    }
  };
  return (
    <div ref={list} className="tabs" role="tablist" aria-label={label} onKeyDown={handleKeyDown}>
      {tabs.map((t) => (
        <button
          key={t.id}
          type="button"
          role="tab"
          aria-selected={t.id === value}
          tabIndex={t.id === value ? 0 : -1}
          onClick={() => onChange(t.id)}
        >
          {t.label}
        </button>
      ))}
    </div>
  );
}

export function EmptyState({ icon, title, children, actions }: { icon?: IconName; title: string; children?: ReactNode; actions?: ReactNode }) {
  return (
    <div className="empty">
      {icon && (
        <span className="empty-icon">
          <Icon name={icon} size={22} />
        </span>
      )}
      <h2>{title}</h2>
      {children && <div className="empty-text">{children}</div>}
      {actions && <div className="row center">{actions}</div>}
    </div>
  );
}

export function ErrorNote({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div className="note bad" role="alert">
      <Icon name="alert" />
      <div className="grow">
        <strong>{error.offline ? 'Not connected' : 'Request failed'}</strong>
        <div className="wrap">{error.message}</div>
        {error.requestId && <div className="muted small">Request {error.requestId}</div>}
      </div>
      {retry && (
        <Button small icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Note({ tone = 'neutral', children, actions }: { tone?: Tone; children: ReactNode; actions?: ReactNode }) {
  return (
    <div className={`note ${tone}`}>
      <Icon name={tone === 'bad' || tone === 'warn' ? 'alert' : 'info'} />
      <div className="grow wrap">{children}</div>
      {actions}
    </div>
  );
}

export function Skeleton({ rows = 6, height = 44 }: { rows?: number; height?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} style={{ height, opacity: 1 - i / (rows + 2) }} />
      ))}
    </div>
  );
}

export function Dialog({ title, open, onClose, children, wide }: { title: string; open: boolean; onClose: () => void; children: ReactNode; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const d = ref.current;
    if (!d) return;
    if (open && !d.open) {
      d.showModal();
      // Focus the first input, except on phones, where that opens the keyboard.
      if (matchMedia('(hover: hover)').matches) d.querySelector<HTMLElement>('input:not([type=checkbox], [type=radio]), textarea')?.focus();
    }
    if (!open && d.open) d.close();
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={ref}
      className={wide ? 'wide' : ''}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        onClose();
      }}
      onMouseDown={(e) => {
        if (e.target === ref.current) onClose();
      }}
    >
      <div className="dialog">
        <header>
          <h2 id={id}>{title}</h2>
          <Button kind="quiet" icon="close" aria-label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: ReactNode; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint && <div className="hint">{hint}</div>}
    </div>
  );
}

export function Switch({ on, onChange, label, disabled }: { on: boolean; onChange: (on: boolean) => void; label: string; disabled?: boolean }) {
  return (
    <button type="button" role="switch" aria-checked={on} aria-label={label} className="switch" disabled={disabled} onClick={() => onChange(!on)}>
      <span />
    </button>
  );
}

export function Code({ text, lang, max, children }: { text: string; lang?: string; max?: number; /** The highlighted text. */ children?: ReactNode }) {
  return (
    <div className="code">
      <div className="code-head">
        <span>{lang ?? ''}</span>
        <CopyButton text={text} label={`Copy ${lang ?? 'text'}`} />
      </div>
      <pre tabIndex={0} aria-label={lang ?? 'code'} style={max ? { maxHeight: max } : undefined}>
        <code>{children ?? text}</code>
      </pre>
    </div>
  );
}

// Toasts: short notifications.

interface Toast {
  id: number;
  text: string;
  tone: Tone;
}
const ToastContext = createContext<(text: string, tone?: Tone) => void>(() => {});
export const useToast = () => useContext(ToastContext);

export function Toasts({ children }: { children: ReactNode }) {
  const [list, setList] = useState<Toast[]>([]);
  const nextId = useRef(0);
  const add = useCallback((text: string, tone: Tone = 'neutral') => {
    const id = nextId.current++;
    setList((l) => [...l.slice(-3), { id, text, tone }]);
    setTimeout(() => setList((l) => l.filter((t) => t.id !== id)), tone === 'bad' ? 8000 : 4000);
  }, []);
  return (
    <ToastContext.Provider value={add}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {list.map((t) => (
          <div key={t.id} className={`toast ${t.tone}`}>
            {t.text}
          </div>
        ))}
      </div>
    </ToastContext.Provider>
  );
}

/** useAction runs one action at a time and shows its error as a toast. */
export function useAction(): [string | null, (name: string, run: () => Promise<unknown>, done?: string) => Promise<boolean>] {
  const toast = useToast();
  const [busy, setBusy] = useState<string | null>(null);
  const act = useCallback(
    async (name: string, run: () => Promise<unknown>, done?: string) => {
      setBusy(name);
      try {
        await run();
        if (done) toast(done, 'ok');
        return true;
      } catch (e) {
        toast(e instanceof Error ? e.message : String(e), 'bad');
        return false;
      } finally {
        setBusy(null);
      }
    },
    [toast],
  );
  return [busy, act];
}
