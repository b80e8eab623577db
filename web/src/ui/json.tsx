import { memo, useState } from 'react';
import { json, size } from '../lib/format';
import { Button, CopyButton } from './ui';

/** page is the number of members of a list or object that are shown at first. */
const page = 100;
/** textPage is the number of characters of a text that are shown at first. */
const textPage = 32 * 1024;

/** Tree shows any JSON value. Only expanded nodes are rendered, in pages, so that large values stay fast. */
export const Tree = memo(function Tree({ value, name, depth = 0, open = 2 }: { value: unknown; name?: string; depth?: number; open?: number }) {
  const isObject = typeof value === 'object' && value !== null;
  const [unfolded, fold] = useState(depth < open);
  const [shown, show] = useState(page);
  if (!isObject) {
    return (
      <div className="tree-row" style={{ paddingLeft: depth * 14 + 16 }}>
        {name !== undefined && <span className="tree-key">{name}: </span>}
        <Leaf value={value} />
      </div>
    );
  }
  const isArray = Array.isArray(value);
  const entries: [string, unknown][] = unfolded ? Object.entries(value) : [];
  const length = isArray ? value.length : Object.keys(value).length;
  return (
    <div>
      <button type="button" className="tree-row tree-fold" style={{ paddingLeft: depth * 14 }} aria-expanded={unfolded} onClick={() => fold(!unfolded)}>
        <span className={`tree-arrow ${unfolded ? 'open' : ''}`} aria-hidden="true">
          ›
        </span>
        {name !== undefined && <span className="tree-key">{name}: </span>}
        <span className="tree-count">{isArray ? `[${length}]` : `{${length}}`}</span>
      </button>
      {entries.slice(0, shown).map(([k, v]) => (
        <Tree key={k} name={k} value={v} depth={depth + 1} open={open} />
      ))}
      {entries.length > shown && (
        <div style={{ paddingLeft: (depth + 1) * 14 + 12 }}>
          <Button kind="quiet" small onClick={() => show(shown + page * 5)}>
            {entries.length - shown} more
          </Button>
        </div>
      )}
    </div>
  );
});

function Leaf({ value }: { value: unknown }) {
  const [all, set] = useState(false);
  if (typeof value === 'string') {
    const long = value.length > 600;
    return (
      <span className="tree-string wrap">
        "{long && !all ? value.slice(0, 600) + '…' : value.slice(0, textPage)}"
        {long && !all && (
          <button type="button" className="linkish" onClick={() => set(true)}>
            {' '}
            show {size(Math.min(value.length, textPage))}
          </button>
        )}
      </span>
    );
  }
  return <span className={value === null ? 'tree-null' : typeof value === 'boolean' ? 'tree-bool' : 'tree-number'}>{String(value)}</span>;
}

/** LongText shows a text of any length, in pages. */
export function LongText({ text, mono = true }: { text: string; mono?: boolean }) {
  const [shown, show] = useState(textPage);
  return (
    <div className="longtext">
      <pre className={mono ? '' : 'prose'} tabIndex={0} aria-label="text">
        {text.length > shown ? text.slice(0, shown) : text}
      </pre>
      {text.length > shown && (
        <div className="row longtext-more">
          <span className="muted">
            {size(shown)} of {size(text.length)}
          </span>
          <Button small onClick={() => show(shown * 2)}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

/** JsonView is a Tree with a button that copies the JSON. */
export function JsonView({ value, open = 2, label = 'JSON' }: { value: unknown; open?: number; label?: string }) {
  return (
    <div className="jsonview">
      <div className="jsonview-copy">
        <CopyButton text={() => json(value)} label={`Copy ${label}`} />
      </div>
      <div className="tree" role="group" aria-label={label}>
        <Tree value={value} open={open} />
      </div>
    </div>
  );
}
