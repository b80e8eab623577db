import type { Status } from '../lib/api';
import { plural } from '../lib/format';
import { href } from '../lib/use';
import { Icon, type IconName } from '../ui/icons';
import { Code, Note } from '../ui/ui';

/** Welcome is the first screen: what can be done now, and what comes next. */
export function Welcome({ status, noModel, chatMissing, onAsk }: { status?: Status; noModel: boolean; chatMissing: boolean; onAsk: (text: string) => void }) {
  const own = status?.servers.filter((s) => s.name !== 'junctor') ?? [];
  const first = status !== undefined && own.length === 0;
  const builtin = status?.servers.some((s) => s.name === 'junctor');
  return (
    <div className={`welcome ${first ? 'first' : ''}`}>
      <h2>{first ? 'Welcome to Junctor' : 'What shall we do?'}</h2>
      <p className="lead">
        {first
          ? 'One place between your models and your tools. Three steps, in any order:'
          : status && reach(status)}
      </p>
      {first && (
        <ol className="steps">
          {builtin && (
            <Step icon="play" title="Try a tool now" text="The built-in tools need no set-up: the time anywhere, exact arithmetic, text.">
              <a className="button primary" href={href(['tools', 'junctor', 'calculate'])}>
                Calculate something
              </a>
              <a className="button" href={href(['tools'])}>
                All tools
              </a>
            </Step>
          )}
          <Step icon="servers" title="Add your servers" text="Take over what Claude, Cursor, VS Code and others on this machine have, or paste any client's JSON.">
            <a className="button primary" href={href(['servers'], { add: 'import' })}>
              Import
            </a>
            <a className="button" href={href(['servers'], { add: 'form' })}>
              Add a server
            </a>
          </Step>
          <Step icon="spark" title={noModel ? 'Get a model' : 'Ask'} text={noModel ? 'The chat needs one; everything else works without.' : 'A model is set up. Type below.'}>
            {noModel && (
              <a className="button" href="#get-a-model" onClick={(e) => (e.preventDefault(), document.getElementById('get-a-model')?.scrollIntoView({ behavior: 'smooth' }))}>
                How
              </a>
            )}
          </Step>
        </ol>
      )}
      {chatMissing && <Note tone="warn">The chat is not available on this gateway. Tools, servers and activity work as usual.</Note>}
      {!noModel && !chatMissing && (
        <div className="row ideas">
          {['What can you do with the tools you have?', 'What is 2^64, exactly?', 'What time is it in Tokyo and in Lima?'].map((q) => (
            <button type="button" key={q} className="idea" onClick={() => onAsk(q)}>
              {q}
            </button>
          ))}
        </div>
      )}
      {noModel && <NoModel />}
    </div>
  );
}

/** reach says what can be used now: servers that are away do not count. */
export function reach(status: Status): string {
  const there = status.servers.filter((s) => s.status === 'connected');
  const tools = there.reduce((n, s) => n + s.tools, 0);
  if (there.length === 0) return 'No server is connected now.';
  return `${plural(tools, 'tool')} of ${plural(there.length, 'server')} can be used in this chat.`;
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

/** NoModel says how to get a model; the rest of the page does not need one. */
export function NoModel() {
  return (
    <section className="nomodel" id="get-a-model">
      <h3>No model is set up</h3>
      <p>
        Give the gateway a key in its environment and start it again. Any of <code>GEMINI_API_KEY</code>, <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> and{' '}
        <code>XAI_API_KEY</code> will do:
      </p>
      <Code lang="shell" text={'export GEMINI_API_KEY=…\njunctor serve'} />
      <p>Or use a model on this machine with Ollama, which is found by itself:</p>
      <Code lang="shell" text={'ollama serve\nollama pull qwen3'} />
      <p>
        Or name one in the configuration, also any OpenAI-compatible server:
      </p>
      <Code lang="json" text={'"llm": { "provider": "openai", "model": "gpt-5", "baseUrl": "https://…/v1", "apiKey": "${MY_KEY}" }'} />
    </section>
  );
}
