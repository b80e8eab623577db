import { useRef } from 'react';
import { formatSize as bytes } from '../lib/format';
import { Icon } from '../ui/icons';
import { Button } from '../ui/ui';
import type { Attachment } from './protocol';

/** readFiles returns files as attachments. */
export function readFiles(files: Iterable<File>): Promise<Attachment[]> {
  return Promise.all(
    [...files].map(
      (f) =>
        new Promise<Attachment>((done, fail) => {
          const reader = new FileReader();
          reader.onerror = () => fail(new Error(`${f.name} cannot be read`));
          // data:image/png;base64,…
          reader.onload = () => done({ name: f.name || 'pasted', mimeType: f.type || 'text/plain', data: String(reader.result).replace(/^[^,]*,/, ''), size: f.size });
          reader.readAsDataURL(f);
        }),
    ),
  );
}

/** AttachButton lets the user choose files. */
export function AttachButton({ onFiles }: { onFiles: (files: FileList) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to attach"
        onChange={(e) => {
          if (e.target.files) onFiles(e.target.files);
          e.target.value = '';
        }}
      />
      <Button kind="quiet" icon="clip" aria-label="Attach files" title="Attach files" onClick={() => input.current?.click()} />
    </>
  );
}

export function FileChip({ name, size, onRemove }: { name: string; size: number; onRemove?: () => void }) {
  return (
    <span className="chip">
      <Icon name="clip" size={14} /> <span className="ellipsis">{name}</span> {size > 0 && <span className="muted small">{bytes(size)}</span>}
      {onRemove && <Button kind="quiet" small icon="close" aria-label={`Remove ${name}`} onClick={onRemove} />}
    </span>
  );
}
