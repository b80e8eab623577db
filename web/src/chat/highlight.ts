// Syntax highlighting, loaded with the first code block that names its language.
import { common, createLowlight } from 'lowlight';
import { createElement, type ReactNode } from 'react';

const lowlight = createLowlight(common);

interface HastNode {
  type: string;
  value?: string;
  properties?: { className?: string[] };
  children?: HastNode[];
}

/** highlight returns highlighted code, or undefined for an unknown language. */
export function highlight(text: string, lang: string): ReactNode {
  if (!lowlight.registered(lang)) return undefined;
  const show = (n: HastNode, i: number): ReactNode => (n.type === 'text' ? n.value : createElement('span', { key: i, className: (n.properties?.className ?? []).join(' ') }, (n.children ?? []).map(show)));
  return (lowlight.highlight(lang, text).children as HastNode[]).map(show);
}
