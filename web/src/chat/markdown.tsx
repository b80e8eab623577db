import { memo, useEffect, useState, type ReactNode } from 'react';
import Markdown, { defaultUrlTransform } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { Code } from '../ui/ui';
import { delimitFormulas, mayHaveMath } from './formulas';

const plugins = [remarkGfm];

/** useModule imports a module when it is needed. */
function useModule<T>(needed: boolean, load: () => Promise<T>): T | undefined {
  const [module, setModule] = useState<T>();
  useEffect(() => {
    if (!needed || module) return;
    let unmounted = false;
    load().then(
      (m) => !unmounted && setModule(() => m),
      () => {}, // without it the text is shown unformatted
    );
    return () => {
      unmounted = true;
    };
  }, [needed, module]);
  return module;
}

/** maxHighlight is the length above which code is not highlighted. */
const maxHighlight = 50_000;

function CodeBlock({ text, lang }: { text: string; lang?: string }) {
  const module = useModule(lang !== undefined && text.length <= maxHighlight, () => import('./highlight'));
  return (
    <Code text={text} lang={lang}>
      {module && lang ? module.highlight(text, lang.toLowerCase()) : undefined}
    </Code>
  );
}

function nodeText(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node);
  if (Array.isArray(node)) return node.map(nodeText).join('');
  if (node && typeof node === 'object' && 'props' in node) return nodeText((node.props as { children?: ReactNode }).children);
  return '';
}

/**
 * MarkdownText renders Markdown. HTML is shown as text. Links open in a new tab without a
 * referrer. Images of other hosts become links: the page sends no request to
 * other hosts, because the URL of an image could leak what the model has read.
 */
export const MarkdownText = memo(function MarkdownText({ text }: { text: string }) {
  const maybeMath = mayHaveMath(text);
  const math = useModule(maybeMath, () => import('./math'));
  return (
    <div className="prose">
      <Markdown
        remarkPlugins={math && maybeMath ? [...plugins, math.plugin] : plugins}
        urlTransform={(url) => (/^(https?:|mailto:)/i.test(url) ? defaultUrlTransform(url) : '')}
        components={{
          a: ({ href, children, ...rest }) =>
            'data-footnote-backref' in rest ? null : href ? (
              <a href={href} target="_blank" rel="noopener noreferrer nofollow">
                {children}
              </a>
            ) : (
              <span>{children}</span>
            ),
          img: ({ src, alt }) =>
            typeof src === 'string' && src ? (
              <a href={src} target="_blank" rel="noopener noreferrer nofollow">
                Image{alt ? `: ${alt}` : ''}
              </a>
            ) : (
              <span>{alt}</span>
            ),
          pre: ({ children }) => {
            const name = (children as { props?: { className?: string } } | undefined)?.props?.className ?? '';
            const source = nodeText(children).replace(/\n$/, '');
            if (math && name.includes('math-display')) return <math.Formula tex={source} display />;
            return <CodeBlock text={source} lang={/language-(\S+)/.exec(name)?.[1]} />;
          },
          code: ({ className, children }) => (math && className?.includes('math-inline') ? <math.Formula tex={nodeText(children)} display={false} /> : <code className={className}>{children}</code>),
          table: ({ children }) => (
            <div className="table-scroll" tabIndex={0} role="group" aria-label="Table">
              <table>{children}</table>
            </div>
          ),
          input: (props) => <input type="checkbox" checked={props.checked} readOnly disabled aria-label="task" />,
        }}
      >
        {math && maybeMath ? delimitFormulas(text) : text}
      </Markdown>
    </div>
  );
});

/** maxMarkdown is the length above which a reply is shown as plain text, because parsing it for every piece would be slow. */
const maxMarkdown = 200_000;

/**
 * StreamingMarkdown renders a text that grows while it is live. The part before the last
 * blank line outside a code block no longer changes, so it is parsed once. Each
 * part gets the definitions of links and footnotes of the other.
 */
export function StreamingMarkdown({ text, live }: { text: string; live: boolean }) {
  if (text.length > maxMarkdown) return <pre className="prose plain">{text}</pre>;
  const at = live ? stableEnd(text) : 0;
  if (at === 0) return <MarkdownText text={text} />;
  const [before, after] = [text.slice(0, at), text.slice(at)];
  return (
    <>
      <MarkdownText text={definitions(after) + before} />
      <MarkdownText text={definitions(before) + after} />
    </>
  );
}

/** definitions returns the lines of a text that define links and footnotes, with a blank line after them. */
export function definitions(text: string): string {
  if (!text.includes(']:')) return '';
  const out: string[] = [];
  let fence = '';
  let inFootnote = false; // in a footnote, which continues in indented lines
  for (const line of text.split('\n')) {
    const fenceMark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fenceMark && (!fence || (fenceMark[0] === fence[0] && fenceMark.length >= fence.length))) fence = fence ? '' : fenceMark;
    if (fence || fenceMark) continue;
    if (/^ {0,3}\[[^\]]+\]:[ \t]*\S/.test(line)) {
      inFootnote = /^ {0,3}\[\^/.test(line);
      out.push(line);
    } else if (inFootnote && /^( {4}|\t)\S/.test(line)) out.push(line);
    else inFootnote = false;
  }
  return out.length > 0 ? out.join('\n') + '\n\n' : '';
}

export function stableEnd(text: string): number {
  let fence = '';
  let stable = 0;
  let at = 0;
  let blank = false;
  for (const line of text.split('\n')) {
    const fenceMark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fenceMark) {
      if (!fence) fence = fenceMark;
      else if (fenceMark[0] === fence[0] && fenceMark.length >= fence.length) fence = '';
    }
    // An unindented line after a blank one starts a new block, unless it
    // continues a list or a table.
    if (blank && !fence && /^[^\s>|*+\-\d]/.test(line)) stable = at;
    blank = line.trim() === '';
    at += line.length + 1;
  }
  return stable;
}
