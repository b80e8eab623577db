import { memo, useMemo, useState } from 'react';
import { AppSlot, useApp } from '../apps/slot';
import { FileChip } from './attach';
import { formatDuration, oneLine, toJson } from '../lib/format';
import { ToolLink } from '../tools/link';
import { Icon } from '../ui/icons';
import { JsonView } from '../ui/json';
import { ResultMedia, ResultView } from '../ui/result';
import { Badge, Button, CopyButton } from '../ui/ui';
import { textOf, waiting, type Block, type CallBlock, type Turn } from './conversation';
import { Streaming } from './markdown';
import { Questions, TimeLeft } from './question';
import type { Chat } from './useChat';

/** Ways are the actions of the user during a reply. */
export type Ways = Pick<Chat, 'decide' | 'answer'> & Partial<Actions> & { /** Sends a message of the user. */ tell?: (text: string) => void };

/** Actions are those on messages of a conversation that is idle. */
export interface Actions {
  edit: (id: string, text: string) => void;
  regenerate: (id: string) => void;
  branch: (id: string) => void;
}

const notices: Record<string, string> = {
  aborted: 'Stopped.',
  interrupted: 'Interrupted: the gateway stopped before the reply was complete.',
  broken: 'The model stopped before the reply was complete.',
};

export const TurnView = memo(function TurnView({ turn, live, ways, idle = false, latest = false, asked = '' }: { turn: Turn; live: boolean; ways: Ways; /** No reply is in progress. */ idle?: boolean; /** It is the last turn. */ latest?: boolean; /** The id of the message that a reply is about. */ asked?: string }) {
  const [editing, setEditing] = useState<string | null>(null);
  const text = textOf(turn);
  if (turn.role === 'user' && editing !== null) {
    return (
      <form
        className="turn user editing"
        aria-label="Edit your message"
        onSubmit={(e) => {
          e.preventDefault();
          if (!editing.trim()) return;
          ways.edit?.(turn.id, editing);
          setEditing(null);
        }}
      >
        <textarea aria-label="Edited message" rows={Math.min(10, editing.split('\n').length + 1)} value={editing} autoFocus onChange={(e) => setEditing(e.target.value)} onKeyDown={(e) => e.key === 'Escape' && setEditing(null)} />
        <div className="row end">
          <Button small onClick={() => setEditing(null)}>
            Cancel
          </Button>
          <Button small kind="primary" type="submit" disabled={!editing.trim() || !idle}>
            Send edited
          </Button>
        </div>
      </form>
    );
  }
  if (turn.role === 'user') {
    return (
      <article className="turn user" aria-label="Your message">
        {turn.blocks.map((b, i) =>
          b.kind === 'text' ? (
            <div key={i} className="said">
              {b.text}
            </div>
          ) : b.kind === 'image' ? (
            <img key={i} src={`data:${b.mime};base64,${b.data}`} alt="Your image" />
          ) : b.kind === 'file' ? (
            <FileChip key={i} name={b.name} size={b.size} />
          ) : null,
        )}
        {turn.id && idle && (
          <div className="turn-foot">
            <Branches turn={turn} ways={ways} />
            {text && <CopyButton text={text} label="Copy message" />}
            {ways.edit && <Button kind="quiet" small icon="edit" aria-label="Edit message" title="Edit message" onClick={() => setEditing(text)} />}
          </div>
        )}
      </article>
    );
  }
  return (
    <article className={`turn assistant ${turn.notice === 'fallback' ? 'fallback' : ''}`} aria-label="Reply">
      {turn.blocks.map((b, i) => (
        <BlockView key={i} block={b} live={live && i === turn.blocks.length - 1} latest={latest} ways={ways} />
      ))}
      {turn.notice && notices[turn.notice] && <p className="muted small">{notices[turn.notice]}</p>}
      {!live && text && (
        <div className="turn-foot">
          <Branches turn={turn} ways={ways} />
          <CopyButton text={text} label="Copy reply" />
          {idle && asked && ways.regenerate && <Button kind="quiet" small icon="refresh" aria-label="Answer again" title="Answer again" onClick={() => ways.regenerate?.(asked)} />}
          {turn.model && <span className="muted small">{turn.model}</span>}
        </div>
      )}
    </article>
  );
});

function BlockView({ block, live, latest, ways }: { block: Block; live: boolean; latest: boolean; ways: Ways }) {
  switch (block.kind) {
    case 'text':
      return <Streaming text={block.text} live={live} />;
    case 'reasoning':
      return (
        <details className="reasoning" open={live || undefined}>
          <summary>{live ? 'Thinking…' : 'Reasoning'}</summary>
          <div className="wrap">{block.text}</div>
        </details>
      );
    case 'call':
      return <CallCard call={block} latest={latest} ways={ways} />;
    case 'image':
    case 'file':
      return null;
  }
}

/** Branches goes through the alternatives of a message. */
function Branches({ turn, ways }: { turn: Turn; ways: Ways }) {
  const all = turn.siblings ?? [];
  const at = all.indexOf(turn.id);
  if (all.length < 2 || at < 0 || !ways.branch) return null;
  const step = (by: number) => ways.branch?.(all[at + by]!);
  return (
    <span className="branches" role="group" aria-label="Versions">
      <Button kind="quiet" small icon="back" aria-label="Previous version" disabled={at === 0} onClick={() => step(-1)} />
      <span className="muted small">
        {at + 1}/{all.length}
      </span>
      <Button kind="quiet" small icon="right" aria-label="Next version" disabled={at === all.length - 1} onClick={() => step(1)} />
    </span>
  );
}

export function splitName(name: string): [server: string, tool: string] {
  const at = name.indexOf(':');
  return at < 0 ? ['', name] : [name.slice(0, at), name.slice(at + 1)];
}

const marks = { running: '', asking: 'shield', done: 'check', failed: 'alert' } as const;
const words = { running: 'running', asking: 'waiting for your answer', done: 'done', failed: 'failed' } as const;

function CallCard({ call, latest, ways }: { call: CallBlock; latest: boolean; ways: Ways }) {
  const [open, setOpen] = useState<boolean | null>(null);
  const shown = open ?? call.state === 'asking';
  const [server, tool] = splitName(call.tool);
  const mark = marks[call.state];
  const bare = call.args === undefined || toJson(call.args, 0) === '{}';
  const app = useApp(call.tool);
  const outcome = useMemo(
    () => (call.state === 'running' || call.state === 'asking' ? undefined : call.result ? { result: call.result } : { cancelled: call.message ?? '' }),
    [call.state, call.result, call.message],
  );
  return (
    <section className={`call ${call.state}`} aria-label={`${call.tool}, ${words[call.state]}`}>
      <button type="button" className="call-head" aria-expanded={shown} onClick={() => setOpen(!shown)}>
        <span className={`call-mark ${call.state}`}>{mark ? <Icon name={mark} size={15} /> : <span className="spinner" />}</span>
        <span className="call-name">
          {server && <span className="call-server">{server}</span>}
          <strong>{tool}</strong>
        </span>
        <span className="call-args mono">{!bare && oneLine(call.args, 120)}</span>
        <span className="call-time">
          {call.state === 'asking' ? <Badge tone="warn">needs your answer</Badge> : call.tookMs !== undefined ? formatDuration(call.tookMs) : call.decided === 'denied' ? 'denied' : ''}
        </span>
        <span className={`chevron ${shown ? 'open' : ''}`}>
          <Icon name="right" size={15} />
        </span>
      </button>
      {call.state === 'running' && call.progress !== undefined && (
        <div className="call-progress">
          <progress value={call.total ? call.progress : undefined} max={call.total || undefined} aria-label={`Progress of ${call.tool}`} />
          <span className="muted small">{call.message}</span>
        </div>
      )}
      {!shown && <ResultMedia result={call.result} />}
      {shown && (
        <div className="call-body">
          {call.questions && <Questions of={call.questions} ways={ways} />}
          {!bare && (
            <>
              <h4>Arguments</h4>
              <JsonView value={call.args} open={3} label="Arguments" />
            </>
          )}
          {call.state === 'asking' && !waiting(call.questions) && <Approval call={call} ways={ways} />}
          {call.result !== undefined && call.result !== null && (
            <>
              <h4>{call.state === 'failed' ? 'Error' : 'Result'}</h4>
              <ResultView result={call.result} />
            </>
          )}
          {server && (
            <ToolLink server={server} tool={tool} args={call.args}>
              Open tool
            </ToolLink>
          )}
        </div>
      )}
      {app && (call.state !== 'asking' || call.decided === 'approved') && <AppSlot server={server} tool={tool} uri={app} args={call.args} outcome={outcome} say={ways.tell} open={latest} />}
    </section>
  );
}

function Approval({ call, ways }: { call: CallBlock; ways: Ways }) {
  return (
    <div className="approval" role="group" aria-label={`Approve ${call.tool}?`}>
      <p>
        <strong>Allow this call?</strong> <TimeLeft until={call.expires} />
      </p>
      <div className="row">
        <Button kind="primary" icon="check" onClick={() => ways.decide(call.id, true, 'once')}>
          Allow once
        </Button>
        <Button onClick={() => ways.decide(call.id, true, 'session')}>In this chat</Button>
        <Button onClick={() => ways.decide(call.id, true, 'always')}>Always</Button>
        <Button kind="danger" icon="close" onClick={() => ways.decide(call.id, false)}>
          Deny
        </Button>
      </div>
    </div>
  );
}
