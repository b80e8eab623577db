import { useEffect, useLayoutEffect, useRef, useSyncExternalStore, type KeyboardEvent } from 'react';
import type { ModelInfo } from '../lib/api';
import { Button, useToast } from '../ui/ui';
import { AttachButton, FileChip, readFiles } from './attach';
import { draftAttacher, getDraft, setDraftText, subscribeDrafts, updateDraft } from './drafts';
import type { Attachment } from './protocol';

/** Composer is where the user writes a message and attaches files. */
export function Composer({
  active,
  queued,
  offline,
  models,
  model,
  onModelChange,
  onSend,
  onStop,
  focusKey,
  sessionId,
}: {
  active: boolean;
  /** A message is queued. */
  queued: boolean;
  offline: boolean;
  models: ModelInfo[];
  model: string;
  onModelChange: (m: string) => void;
  onSend: (text: string, attachments: Attachment[]) => boolean;
  onStop: () => void;
  focusKey: string;
  /** The conversation in the URL; '' is a new one. */
  sessionId: string;
}) {
  const { text, files } = useSyncExternalStore(subscribeDrafts, () => getDraft(sessionId));
  const textarea = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = textarea.current;
    if (!area) return;
    area.style.height = 'auto';
    area.style.height = Math.min(area.scrollHeight, 220) + 'px';
  }, [text]);
  useEffect(() => {
    if (matchMedia('(hover: hover)').matches) textarea.current?.focus();
  }, [focusKey]);
  const toast = useToast();
  const attach = (list: Iterable<File>) => {
    // The user may be in another conversation when they have been read.
    readFiles(list).then(draftAttacher(sessionId), (e: unknown) => toast(e instanceof Error ? e.message : String(e), 'bad'));
  };
  const hasContent = text.trim() !== '' || files.length > 0;
  const submit = () => {
    if (queued || !hasContent) return;
    updateDraft(sessionId, { text: '', files: [] }); // before sending, because a refused message is restored immediately
    if (!onSend(text, files)) updateDraft(sessionId, { text, files });
  };
  const handleKeyDown = (e: KeyboardEvent) => {
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
      <label className="sr-only" htmlFor="message-input">
        Message
      </label>
      {files.length > 0 && (
        <div className="row wrap-row" role="group" aria-label="Attachments">
          {files.map((f, i) => (
            <FileChip key={i} name={f.name} size={f.size} onRemove={() => updateDraft(sessionId, { files: files.filter((_, j) => j !== i) })} />
          ))}
        </div>
      )}
      <textarea id="message-input" ref={textarea} rows={1} value={text} placeholder={offline ? 'Not connected. Messages are sent when the connection is restored.' : 'Ask a question or describe a task'} onChange={(e) => setDraftText(sessionId, e.target.value)} onKeyDown={handleKeyDown} />
      <div className="composer-bar">
        <AttachButton onFiles={attach} />
        {models.length > 0 && (
          <select aria-label="Model" className="quiet" value={models.some((m) => m.id === model) ? model : (models[0]?.id ?? '')} onChange={(e) => onModelChange(e.target.value)}>
            {models.map((m) => (
              <option key={m.id} value={m.id}>
                {m.id}
              </option>
            ))}
          </select>
        )}
        <span className="grow" />
        <span className="muted small hide-narrow">Enter to send · Shift+Enter for a new line</span>
        {active && hasContent && !queued && (
          <Button type="submit" icon="send">
            Send next
          </Button>
        )}
        {active ? (
          <Button kind="danger" icon="stop" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button kind="primary" icon="send" type="submit" disabled={!hasContent}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}
