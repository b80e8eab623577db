import { memo, useState } from 'react';
import { formatSize, toJson } from '../lib/format';
import { Button, CopyButton } from './ui';

/** pageSize is the number of members of a list or object that are shown at first. */
const pageSize = 100;
/** textPageSize is the number of characters of a text that are shown at first. */
const textPageSize = 32 * 1024;

/** JsonTree shows any JSON value. Only expanded nodes are rendered, in pages, so that large values stay fast. */
export const JsonTree = memo(function JsonTree({ value, name, depth = 0, open = 2 }: { value: unknown; name?: string; depth?: number; open?: number }) {
  const isObject = typeof value === 'object' && value !== null;
  const [expanded, setExpanded] = useState(depth < open);
  const [limit, setLimit] = useState(pageSize);
  if (!isObject) {
    return (
      <div className="tree-row" style={{ paddingLeft: depth * 14 + 16 }}>
        {name !== undefined && <span className="tree-key">{name}: </span>}
        <JsonLeaf value={value} />
      </div>
    );
  }
  const isArray = Array.isArray(value);
  const entries: [string, unknown][] = expanded ? Object.entries(value) : [];
  const length = isArray ? value.length : Object.keys(value).length;
  return (
    <div>
      <button type="button" className="tree-row tree-fold" style={{ paddingLeft: depth * 14 }} aria-expanded={expanded} onClick={() => setExpanded(!expanded)}>
        <span className={`tree-arrow ${expanded ? 'open' : ''}`} aria-hidden="true">
          ›
        </span>
        {name !== undefined && <span className="tree-key">{name}: </span>}
        <span className="tree-count">{isArray ? `[${length}]` : `{${length}}`}</span>
      </button>
      {entries.slice(0, limit).map(([k, v]) => (
        <JsonTree key={k} name={k} value={v} depth={depth + 1} open={open} />
      ))}
      {entries.length > limit && (
        <div style={{ paddingLeft: (depth + 1) * 14 + 12 }}>
          <Button kind="quiet" small onClick={() => setLimit(limit + pageSize * 5)}>
            {entries.length - limit} more
          </Button>
        </div>
      )}
    </div>
  );
});

function JsonLeaf({ value }: { value: unknown }) {
  const [expanded, setExpanded] = useState(false);
  if (typeof value === 'string') {
    const long = value.length > 600;
    return (
      <span className="tree-string wrap">
        "{long && !expanded ? value.slice(0, 600) + '…' : value.slice(0, textPageSize)}"
        {long && !expanded && (
          <button type="button" className="linkish" onClick={() => setExpanded(true)}>
            {' '}
            show {formatSize(Math.min(value.length, textPageSize))}
          </button>
        )}
      </span>
    );
  }
  return <span className={value === null ? 'tree-null' : typeof value === 'boolean' ? 'tree-bool' : 'tree-number'}>{String(value)}</span>;
}

/** LongText shows a text of any length, in pages. */
export function LongText({ text, mono = true }: { text: string; mono?: boolean }) {
  const [limit, setLimit] = useState(textPageSize);
  return (
    <div className="longtext">
      <pre className={mono ? '' : 'prose'} tabIndex={0} aria-label="text">
        {text.length > limit ? text.slice(0, limit) : text}
      </pre>
      {text.length > limit && (
        <div className="row longtext-more">
          <span className="muted">
            {formatSize(limit)} of {formatSize(text.length)}
          </span>
          <Button small onClick={() => setLimit(limit * 2)}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

/** JsonView is a JsonTree with a button that copies the JSON. */
export function JsonView({ value, open = 2, label = 'JSON' }: { value: unknown; open?: number; label?: string }) {
  return (
    <div className="jsonview">
      <div className="jsonview-copy">
        <CopyButton text={() => toJson(value)} label={`Copy ${label}`} />
      </div>
      <div className="tree" role="group" aria-label={label}>
        <JsonTree value={value} open={open} />
      </div>
    </div>
  );
}
