import { useMemo, useState } from 'react';
import { download, formatSize, toJson } from '../lib/format';
import { parseTruncated } from './truncated';
import { DataView } from './data';
import { JsonView, LongText } from './json';
import { ResourceLink } from './resource';
import { Badge, Button, CopyButton, Note, Tabs } from './ui';

interface ContentBlock {
  type?: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  title?: string;
  description?: string;
  resource?: { uri?: string; mimeType?: string; text?: string; blob?: string };
}

export interface ToolResult {
  content?: ContentBlock[];
  structuredContent?: unknown;
  isError?: boolean;
}

/** Media types that are shown inline; none can run scripts. */
const imageTypes = /^image\/(png|jpeg|gif|webp|avif|bmp|x-icon|svg\+xml)$/i;
const audioTypes = /^audio\/[\w.+-]+$/i;
const base64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

/** maxParse is the length above which a text is not parsed as JSON. */
const maxParse = 20 * 1024 * 1024;

function parseJson(text: string): unknown {
  const t = text.trimStart();
  if (text.length > maxParse || (t[0] !== '{' && t[0] !== '[')) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** ResultView shows a tool's result: text, JSON, images, audio and resources. */
export function ResultView({ result }: { result: unknown }) {
  return typeof result === 'string' ? <StringResult text={result} /> : <CompleteResult result={result} />;
}

/** StringResult shows a result that the call log keeps as a string: truncated JSON, or text that is not JSON. */
function StringResult({ text }: { text: string }) {
  const part = useMemo(() => parseTruncated(text), [text]);
  if (!part) return <LongText text={text} />;
  return (
    <>
      <Note>
        The call log keeps the first {formatSize(text.length)} of {formatSize(part.bytes)}.
      </Note>
      <CompleteResult result={part.value} />
    </>
  );
}

function CompleteResult({ result }: { result: unknown }) {
  const [raw, setRaw] = useState(false);
  const r = (typeof result === 'object' && result !== null ? result : {}) as ToolResult;
  const blocks = Array.isArray(r.content) ? r.content : [];
  const notToolResult = typeof result !== 'object' || result === null || (!Array.isArray(r.content) && r.structuredContent === undefined);
  // Servers repeat structured content as text for older clients.
  const textRepeatsStructured = useMemo(() => {
    if (r.structuredContent === undefined || blocks.length !== 1 || typeof blocks[0]?.text !== 'string' || blocks[0].text.length > 200_000) return false;
    const parsed = parseJson(blocks[0].text);
    return parsed !== undefined && JSON.stringify(parsed) === JSON.stringify(r.structuredContent);
  }, [r.structuredContent, blocks]);

  if (notToolResult) return <JsonView value={result} label="Result" />;
  return (
    <div className="result">
      <div className="result-bar">
        <Tabs
          label="Result format"
          value={raw ? 'raw' : 'shown'}
          onChange={(v) => setRaw(v === 'raw')}
          tabs={[
            { id: 'shown', label: 'Result' },
            { id: 'raw', label: 'Raw' },
          ]}
        />
        <span className="grow" />
        <CopyButton text={() => toJson(result)} label="Copy result as JSON" />
        <Button kind="quiet" small icon="download" aria-label="Save result to a file" title="Save" onClick={() => download('result.json', toJson(result), 'application/json')} />
      </div>
      {raw ? (
        <JsonView value={result} open={3} label="Raw result" />
      ) : (
        <>
          {r.structuredContent !== undefined && <DataView value={r.structuredContent} open={2} label="Structured result" />}
          {!textRepeatsStructured && blocks.map((b, i) => <ContentView key={i} block={b} />)}
          {blocks.length === 0 && r.structuredContent === undefined && <p className="muted">The tool returned no content.</p>}
        </>
      )}
    </div>
  );
}

/** ResultMedia shows only the images and audio of a result. */
export function ResultMedia({ result }: { result: unknown }) {
  const content = (result as ToolResult | null | undefined)?.content;
  if (!Array.isArray(content)) return null;
  const media = content.flatMap((b) => {
    const [data, mime] = b?.type === 'resource' ? [b.resource?.blob, b.resource?.mimeType] : [b?.data, b?.mimeType];
    return typeof data === 'string' && typeof mime === 'string' && (imageTypes.test(mime) || audioTypes.test(mime)) ? [{ data, mime }] : [];
  });
  if (media.length === 0) return null;
  return (
    <div className="call-media">
      {media.slice(0, 6).map((m, i) => (
        <Media key={i} {...m} />
      ))}
      {media.length > 6 && <p className="muted small">{media.length - 6} more in the result</p>}
    </div>
  );
}

function ContentView({ block }: { block: ContentBlock }) {
  switch (block.type) {
    case 'text':
      return <TextView text={block.text ?? ''} />;
    case 'image':
    case 'audio':
      return <Media data={block.data ?? ''} mime={block.mimeType ?? ''} />;
    case 'resource_link':
      return <ResourceLink link={block} show={(resource, i) => <ContentView key={i} block={{ type: 'resource', resource }} />} />;
    case 'resource': {
      const res = block.resource ?? {};
      return (
        <div className="resource">
          <div className="row">
            <Badge>resource</Badge>
            <span className="mono small wrap grow">{res.uri}</span>
            {res.mimeType && <span className="muted small">{res.mimeType}</span>}
          </div>
          {typeof res.text === 'string' && <TextView text={res.text} />}
          {typeof res.blob === 'string' && <Media data={res.blob} mime={res.mimeType ?? ''} name={res.uri?.split('/').at(-1)} />}
        </div>
      );
    }
  }
  return <JsonView value={block} label="Content" />;
}

function TextView({ text }: { text: string }) {
  const parsed = useMemo(() => parseJson(text), [text]);
  const [asText, setAsText] = useState(false);
  if (parsed === undefined) return <LongText text={text} />;
  return (
    <div>
      {asText ? <LongText text={text} /> : <DataView value={parsed} label="Result" />}
      <Button kind="quiet" small onClick={() => setAsText(!asText)}>
        {asText ? 'Show as data' : 'Show as text'}
      </Button>
    </div>
  );
}

function Media({ data, mime, name = 'file' }: { data: string; mime: string; name?: string }) {
  const [broken, setBroken] = useState(false);
  const bytes = Math.floor((data.length * 3) / 4);
  const valid = data.length > 0 && base64.test(data.slice(0, 200)) && !broken;
  const save = () => {
    try {
      const raw = atob(data.replace(/\s/g, ''));
      const array = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i++) array[i] = raw.charCodeAt(i);
      download(name, array, mime || 'application/octet-stream');
    } catch {
      setBroken(true);
    }
  };
  if (!valid) return <Note tone="warn">This {mime || 'content'} cannot be shown: it is not valid base64, or the browser cannot read it.</Note>;
  return (
    <figure className="media">
      {imageTypes.test(mime) && <img src={`data:${mime};base64,${data}`} alt="Tool result" onError={() => setBroken(true)} />}
      {audioTypes.test(mime) && <audio controls src={`data:${mime};base64,${data}`} onError={() => setBroken(true)} />}
      <figcaption className="row">
        <span className="muted small">
          {mime || 'unknown type'} · {formatSize(bytes)}
        </span>
        <Button kind="quiet" small icon="download" onClick={save}>
          Save
        </Button>
      </figcaption>
    </figure>
  );
}
