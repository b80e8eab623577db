import { useEffect, useLayoutEffect, useRef, useSyncExternalStore, type KeyboardEvent } from 'react';
import type { ModelInfo } from '../lib/api';
import { Button, useToast } from '../ui/ui';
import { AttachButton, FileChip, read } from './attach';
import { attachTo, changeDraft, draftOf, onDrafts, writeDraft } from './drafts';
import type { Attachment } from './protocol';

/** Composer is where the user writes a message and attaches files. */
export function Composer({
  active,
  waiting: queued,
  offline,
  models,
  model,
  setModel,
  onSay,
  onStop,
  focus,
  id,
}: {
  active: boolean;
  /** A message waits to be sent. */
  waiting: boolean;
  offline: boolean;
  models: ModelInfo[];
  model: string;
  setModel: (m: string) => void;
  onSay: (text: string, attachments: Attachment[]) => boolean;
  onStop: () => void;
  focus: string;
  /** The conversation in the address. */
  id: string;
}) {
  const { text, files } = useSyncExternalStore(onDrafts, () => draftOf(id));
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const a = area.current;
    if (!a) return;
    a.style.height = 'auto';
    a.style.height = Math.min(a.scrollHeight, 220) + 'px';
  }, [text]);
  useEffect(() => {
    if (matchMedia('(hover: hover)').matches) area.current?.focus();
  }, [focus]);
  const toast = useToast();
  const attach = (list: Iterable<File>) => {
    // The user may be in another conversation when they have been read.
    read(list).then(attachTo(id), (e: unknown) => toast(e instanceof Error ? e.message : String(e), 'bad'));
  };
  const some = text.trim() !== '' || files.length > 0;
  const submit = () => {
    if (queued || !some) return;
    changeDraft(id, { text: '', files: [] }); // first: the message may come back at once
    if (!onSay(text, files)) changeDraft(id, { text, files });
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) {
      e.preventDefault();
      submit();
    }
    if (e.key === 'Escape' && active) onStop();
  };
  return (
    <form
      className="composer"
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        attach(e.dataTransfer.files);
      }}
      onPaste={(e) => {
        if (e.clipboardData.files.length > 0) {
          e.preventDefault();
          attach(e.clipboardData.files);
        }
      }}
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      <label className="sr-only" htmlFor="say">
        Message
      </label>
      {files.length > 0 && (
        <div className="row wrap-row" role="group" aria-label="Attachments">
          {files.map((f, i) => (
            <FileChip key={i} name={f.name} size={f.size} onRemove={() => changeDraft(id, { files: files.filter((_, j) => j !== i) })} />
          ))}
        </div>
      )}
      <textarea id="say" ref={area} rows={1} value={text} placeholder={offline ? 'Not connected. Messages are sent when the connection is restored.' : 'Ask a question or describe a task'} onChange={(e) => writeDraft(id, e.target.value)} onKeyDown={keys} />
      <div className="composer-bar">
        <AttachButton onFiles={attach} />
        {models.length > 0 && (
          <select aria-label="Model" className="quiet" value={models.some((m) => m.id === model) ? model : (models[0]?.id ?? '')} onChange={(e) => setModel(e.target.value)}>
            {models.map((m) => (
              <option key={m.id} value={m.id}>
                {m.id}
              </option>
            ))}
          </select>
        )}
        <span className="grow" />
        <span className="muted small hide-narrow">Enter to send · Shift+Enter for a new line</span>
        {active && some && !queued && (
          <Button type="submit" icon="send">
            Send next
          </Button>
        )}
        {active ? (
          <Button kind="danger" icon="stop" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button kind="primary" icon="send" type="submit" disabled={!some}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}
