import { memo, useMemo, useState } from 'react';
import { AppSlot, useApp } from '../apps/slot';
import { FileChip } from './attach';
import { formatDuration, oneLine, toJson } from '../lib/format';
import { ToolLink } from '../tools/link';
import { Icon } from '../ui/icons';
import { JsonView } from '../ui/json';
import { ResultMedia, ResultView } from '../ui/result';
import { Badge, Button, CopyButton } from '../ui/ui';
import { hasOpenQuestion, turnText, type Block, type CallBlock, type Turn } from './conversation';
import { StreamingMarkdown } from './markdown';
import { Questions, TimeLeft } from './question';
import type { Chat } from './useChat';

/** TurnActions are the actions of the user on the turns of a conversation. */
export type TurnActions = Pick<Chat, 'decide' | 'answer'> & Partial<MessageActions> & { /** Sends a message of the user. */ sendMessage?: (text: string) => void };

/** MessageActions are the actions on a message while no reply is in progress. */
export interface MessageActions {
  edit: (id: string, text: string) => void;
  regenerate: (id: string) => void;
  switchBranch: (id: string) => void;
}

const notices: Record<string, string> = {
  aborted: 'Stopped.',
  interrupted: 'Interrupted: the gateway stopped before the reply was complete.',
  broken: 'The model stopped before the reply was complete.',
};

export const TurnView = memo(function TurnView({ turn, live, actions, idle = false, latest = false, userMessageId = '' }: { turn: Turn; live: boolean; actions: TurnActions; /** No reply is in progress. */ idle?: boolean; /** It is the last turn. */ latest?: boolean; /** The id of the user's message before a reply. */ userMessageId?: string }) {
  const [editing, setEditing] = useState<string | null>(null);
  const text = turnText(turn);
  if (turn.role === 'user' && editing !== null) {
    return (
      <form
        className="turn user editing"
        aria-label="Edit your message"
        onSubmit={(e) => {
          e.preventDefault();
          if (!editing.trim()) return;
          actions.edit?.(turn.id, editing);
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
            <div key={i} className="user-text">
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
            <Branches turn={turn} actions={actions} />
            {text && <CopyButton text={text} label="Copy message" />}
            {actions.edit && <Button kind="quiet" small icon="edit" aria-label="Edit message" title="Edit message" onClick={() => setEditing(text)} />}
          </div>
        )}
      </article>
    );
  }
  return (
    <article className={`turn assistant ${turn.notice === 'fallback' ? 'fallback' : ''}`} aria-label="Reply">
      {turn.blocks.map((b, i) => (
        <BlockView key={i} block={b} live={live && i === turn.blocks.length - 1} latest={latest} actions={actions} />
      ))}
      {turn.notice && notices[turn.notice] && <p className="muted small">{notices[turn.notice]}</p>}
      {!live && text && (
        <div className="turn-foot">
          <Branches turn={turn} actions={actions} />
          <CopyButton text={text} label="Copy reply" />
          {idle && userMessageId && actions.regenerate && <Button kind="quiet" small icon="refresh" aria-label="Answer again" title="Answer again" onClick={() => actions.regenerate?.(userMessageId)} />}
          {turn.model && <span className="muted small">{turn.model}</span>}
        </div>
      )}
    </article>
  );
});

function BlockView({ block, live, latest, actions }: { block: Block; live: boolean; latest: boolean; actions: TurnActions }) {
  switch (block.kind) {
    case 'text':
      return <StreamingMarkdown text={block.text} live={live} />;
    case 'reasoning':
      return (
        <details className="reasoning" open={live || undefined}>
          <summary>{live ? 'Thinking…' : 'Reasoning'}</summary>
          <div className="wrap">{block.text}</div>
        </details>
      );
    case 'call':
      return <CallCard call={block} latest={latest} actions={actions} />;
    case 'image':
    case 'file':
      return null;
  }
}

/** Branches switches between the versions of a message. */
function Branches({ turn, actions }: { turn: Turn; actions: TurnActions }) {
  const all = turn.siblings ?? [];
  const at = all.indexOf(turn.id);
  if (all.length < 2 || at < 0 || !actions.switchBranch) return null;
  const step = (by: number) => actions.switchBranch?.(all[at + by]!);
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

export function splitToolName(name: string): [server: string, tool: string] {
  const at = name.indexOf(':');
  return at < 0 ? ['', name] : [name.slice(0, at), name.slice(at + 1)];
}

const stateIcons = { running: '', asking: 'shield', done: 'check', failed: 'alert' } as const;
const stateLabels = { running: 'running', asking: 'waiting for your answer', done: 'done', failed: 'failed' } as const;

function CallCard({ call, latest, actions }: { call: CallBlock; latest: boolean; actions: TurnActions }) {
  const [open, setOpen] = useState<boolean | null>(null);
  const expanded = open ?? call.state === 'asking';
  const [server, tool] = splitToolName(call.tool);
  const icon = stateIcons[call.state];
  const noArguments = call.args === undefined || toJson(call.args, 0) === '{}';
  const app = useApp(call.tool);
  const outcome = useMemo(
    () => (call.state === 'running' || call.state === 'asking' ? undefined : call.result ? { result: call.result } : { cancelled: call.message ?? '' }),
    [call.state, call.result, call.message],
  );
  return (
    <section className={`call ${call.state}`} aria-label={`${call.tool}, ${stateLabels[call.state]}`}>
      <button type="button" className="call-head" aria-expanded={expanded} onClick={() => setOpen(!expanded)}>
        <span className={`call-mark ${call.state}`}>{icon ? <Icon name={icon} size={15} /> : <span className="spinner" />}</span>
        <span className="call-name">
          {server && <span className="call-server">{server}</span>}
          <strong>{tool}</strong>
        </span>
        <span className="call-args mono">{!noArguments && oneLine(call.args, 120)}</span>
        <span className="call-time">
          {call.state === 'asking' ? <Badge tone="warn">needs your answer</Badge> : call.tookMs !== undefined ? formatDuration(call.tookMs) : call.decision === 'denied' ? 'denied' : ''}
        </span>
        <span className={`chevron ${expanded ? 'open' : ''}`}>
          <Icon name="right" size={15} />
        </span>
      </button>
      {call.state === 'running' && call.progress !== undefined && (
        <div className="call-progress">
          <progress value={call.total ? call.progress : undefined} max={call.total || undefined} aria-label={`Progress of ${call.tool}`} />
          <span className="muted small">{call.message}</span>
        </div>
      )}
      {!expanded && <ResultMedia result={call.result} />}
      {expanded && (
        <div className="call-body">
          {call.questions && <Questions questions={call.questions} actions={actions} />}
          {!noArguments && (
            <>
              <h4>Arguments</h4>
              <JsonView value={call.args} open={3} label="Arguments" />
            </>
          )}
          {call.state === 'asking' && !hasOpenQuestion(call.questions) && <Approval call={call} actions={actions} />}
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
      {app && (call.state !== 'asking' || call.decision === 'approved') && <AppSlot server={server} tool={tool} uri={app} args={call.args} outcome={outcome} onSendMessage={actions.sendMessage} open={latest} />}
    </section>
  );
}

function Approval({ call, actions }: { call: CallBlock; actions: TurnActions }) {
  return (
    <div className="approval" role="group" aria-label={`Approve ${call.tool}?`}>
      <p>
        <strong>Allow this call?</strong> <TimeLeft until={call.expires} />
      </p>
      <div className="row">
        <Button kind="primary" icon="check" onClick={() => actions.decide(call.id, true, 'once')}>
          Allow once
        </Button>
        <Button onClick={() => actions.decide(call.id, true, 'session')}>In this chat</Button>
        <Button onClick={() => actions.decide(call.id, true, 'always')}>Always</Button>
        <Button kind="danger" icon="close" onClick={() => actions.decide(call.id, false)}>
          Deny
        </Button>
      </div>
    </div>
  );
}
