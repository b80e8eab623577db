import { memo, type ReactNode } from 'react';
import Markdown, { defaultUrlTransform } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { Code } from '../ui/ui';

const plugins = [remarkGfm];

function textOf(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node);
  if (Array.isArray(node)) return node.map(textOf).join('');
  if (node && typeof node === 'object' && 'props' in node) return textOf((node.props as { children?: ReactNode }).children);
  return '';
}

/**
 * Prose renders Markdown. HTML stays text. Links open in a new tab without a
 * referrer. Images of other hosts become links: the page sends no request to
 * other hosts, because the URL of an image could leak what the model has read.
 */
export const Prose = memo(function Prose({ text }: { text: string }) {
  return (
    <div className="prose">
      <Markdown
        remarkPlugins={plugins}
        urlTransform={(url) => (/^(https?:|mailto:)/i.test(url) ? defaultUrlTransform(url) : '')}
        components={{
          a: ({ href, children }) =>
            href ? (
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
            const child = children as { props?: { className?: string } } | undefined;
            return <Code text={textOf(children).replace(/\n$/, '')} lang={/language-(\S+)/.exec(child?.props?.className ?? '')?.[1]} />;
          },
          table: ({ children }) => (
            <div className="table-scroll" tabIndex={0} role="group" aria-label="Table">
              <table>{children}</table>
            </div>
          ),
          input: (props) => <input type="checkbox" checked={props.checked} readOnly disabled aria-label="task" />,
        }}
      >
        {text}
      </Markdown>
    </div>
  );
});

/** maxMarkdown is the length above which a reply is shown as plain text, because parsing it for every piece would be slow. */
const maxMarkdown = 200_000;

/**
 * Streaming renders a growing text. The part before the last blank line outside
 * a code block no longer changes, so it is parsed once.
 */
export function Streaming({ text }: { text: string }) {
  if (text.length > maxMarkdown) return <pre className="prose plain">{text}</pre>;
  const at = stableEnd(text);
  return (
    <>
      {at > 0 && <Prose text={text.slice(0, at)} />}
      <Prose text={text.slice(at)} />
    </>
  );
}

export function stableEnd(text: string): number {
  let fence = '';
  let stable = 0;
  let at = 0;
  let blank = false;
  for (const line of text.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark) {
      if (!fence) fence = mark;
      else if (mark[0] === fence[0] && mark.length >= fence.length) fence = '';
    }
    // An unindented line after a blank one starts a new block, unless it
    // continues a list or a table.
    if (blank && !fence && /^[^\s>|*+\-\d]/.test(line)) stable = at;
    blank = line.trim() === '';
    at += line.length + 1;
  }
  return stable;
}
