import type { Status } from '../lib/api';
import { plural } from '../lib/format';
import { href } from '../lib/use';
import { Icon, type IconName } from '../ui/icons';
import { Code, Note } from '../ui/ui';

/** Welcome is the start screen: first steps for a new gateway, suggestions otherwise. */
export function Welcome({ status, noModel, chatMissing, onSend }: { status?: Status; noModel: boolean; chatMissing: boolean; onSend: (text: string) => void }) {
  const configuredServers = status?.servers.filter((s) => s.name !== 'junctor') ?? [];
  const isNew = status !== undefined && configuredServers.length === 0;
  const builtin = status?.servers.some((s) => s.name === 'junctor');
  return (
    <div className={`welcome ${isNew ? 'first' : ''}`}>
      <h2>{isNew ? 'Welcome to Junctor' : 'What can I help with?'}</h2>
      <p className="lead">
        {isNew
          ? 'One gateway between your models and your tools. Three steps, in any order:'
          : status && availabilityText(status)}
      </p>
      {isNew && (
        <ol className="steps">
          {builtin && (
            <Step icon="play" title="Try a tool now" text="The built-in tools need no setup: time zones, exact arithmetic and text.">
              <a className="button primary" href={href(['tools', 'junctor', 'calculate'])}>
                Calculate something
              </a>
              <a className="button" href={href(['tools'])}>
                All tools
              </a>
            </Step>
          )}
          <Step icon="servers" title="Add your servers" text="Import the servers of Claude, Cursor, VS Code and other programs on this machine, or paste a client's JSON configuration.">
            <a className="button primary" href={href(['servers'], { add: 'import' })}>
              Import
            </a>
            <a className="button" href={href(['servers'], { add: 'form' })}>
              Add a server
            </a>
          </Step>
          <Step icon="spark" title={noModel ? 'Set up a model' : 'Ask a question'} text={noModel ? 'The chat requires a model; everything else works without one.' : 'A model is configured. Type a message below.'}>
            {noModel && (
              <a className="button" href="#get-a-model" onClick={(e) => (e.preventDefault(), document.getElementById('get-a-model')?.scrollIntoView({ behavior: 'smooth' }))}>
                Show how
              </a>
            )}
          </Step>
        </ol>
      )}
      {chatMissing && <Note tone="warn">The chat is not available on this gateway. Tools, servers and activity work as usual.</Note>}
      {!noModel && !chatMissing && (
        <div className="row ideas">
          {['What can you do with the tools you have?', 'What is 2^64, exactly?', 'What time is it in Tokyo and in Lima?'].map((q) => (
            <button type="button" key={q} className="idea" onClick={() => onSend(q)}>
              {q}
            </button>
          ))}
        </div>
      )}
      {noModel && <NoModel />}
    </div>
  );
}

/** availabilityText returns how many tools and servers can be used now; servers that are not connected do not count. */
export function availabilityText(status: Status): string {
  const connected = status.servers.filter((s) => s.status === 'connected');
  const tools = connected.reduce((n, s) => n + s.tools, 0);
  if (connected.length === 0) return 'No server is connected.';
  return `${plural(tools, 'tool')} from ${plural(connected.length, 'server')} available in this chat.`;
}

function Step({ icon, title, text, children }: { icon: IconName; title: string; text: string; children?: React.ReactNode }) {
  return (
    <li className="step">
      <span className="step-icon">
        <Icon name={icon} />
      </span>
      <div className="grow">
        <h3>{title}</h3>
        <p>{text}</p>
        <div className="row">{children}</div>
      </div>
    </li>
  );
}

/** NoModel explains how to set up a model. */
export function NoModel() {
  return (
    <section className="nomodel" id="get-a-model">
      <h3>No model configured</h3>
      <p>
        Set one of these API keys in the gateway's environment and restart it: <code>GEMINI_API_KEY</code>, <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> or{' '}
        <code>XAI_API_KEY</code>.
      </p>
      <Code lang="shell" text={'export GEMINI_API_KEY=…\njunctor serve'} />
      <p>Or run a local model with Ollama, which is detected automatically:</p>
      <Code lang="shell" text={'ollama serve\nollama pull qwen3'} />
      <p>
        Or configure a model, such as one of any OpenAI-compatible server:
      </p>
      <Code lang="json" text={'"llm": { "provider": "openai", "model": "gpt-5.5", "baseUrl": "https://…/v1", "apiKey": "${MY_KEY}" }'} />
    </section>
  );
}
