// Formulas as MathML, loaded with the first text that has one.
import { useLayoutEffect, useRef } from 'react';
import remarkMath from 'remark-math';
import temml from 'temml';

export const plugin: [typeof remarkMath, { singleDollarTextMath: boolean }] = [remarkMath, { singleDollarTextMath: false }];

/** maxTex is the length above which a formula is shown as its TeX source. */
const maxTex = 10_000;

/** Formula shows TeX as MathML; invalid TeX is shown as its source. */
export function Formula({ tex, display }: { tex: string; display: boolean }) {
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    b.textContent = tex;
    if (tex.length > maxTex) return;
    try {
      temml.render(tex, b, { displayMode: display, throwOnError: true, trust: false, maxExpand: 500 });
    } catch {
      b.textContent = tex;
    }
  }, [tex, display]);
  return <span ref={box} className={display ? 'formula display' : 'formula'} />;
}
