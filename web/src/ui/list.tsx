import { useCallback, useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';

/**
 * VirtualList renders only the visible rows, which all have the same height. Arrow
 * keys move between rows.
 */
export function VirtualList<T>({
  items,
  height,
  row,
  keyOf,
  label,
  keepPosition,
  resetKey,
}: {
  items: T[];
  height: number;
  row: (item: T, index: number) => ReactNode;
  keyOf: (item: T) => string;
  label: string;
  /** Keep the scroll position when rows are inserted before the first. */
  keepPosition?: boolean;
  /** Scrolls to the top when it changes. */
  resetKey?: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [viewport, setViewport] = useState({ top: 0, size: 600 });
  const measure = useCallback(() => {
    const b = box.current;
    if (b) setViewport((v) => (v.top === b.scrollTop && v.size === b.clientHeight ? v : { top: b.scrollTop, size: b.clientHeight }));
  }, []);
  useEffect(() => {
    const b = box.current;
    if (!b) return;
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(b);
    return () => observer.disconnect();
  }, [measure]);
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [resetKey]);
  const previousItems = useRef(items);
  useLayoutEffect(() => {
    const b = box.current;
    const old = previousItems.current;
    previousItems.current = items;
    if (!keepPosition || !b || b.scrollTop < height || old.length === 0 || !old[0]) return;
    const first = keyOf(old[0]);
    const moved = items.findIndex((i) => keyOf(i) === first);
    if (moved > 0) b.scrollTop += moved * height;
  }, [items, keepPosition, height, keyOf]);

  const overscan = 6;
  const from = Math.max(0, Math.floor(viewport.top / height) - overscan);
  const to = Math.min(items.length, Math.ceil((viewport.top + viewport.size) / height) + overscan);

  const handleKeyDown = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: Math.floor(viewport.size / height), PageUp: -Math.floor(viewport.size / height), Home: -Infinity, End: Infinity }[e.key];
    const b = box.current;
    if (step === undefined || !b || !(e.target instanceof HTMLElement)) return;
    const rowElement = e.target.closest('[data-index]');
    if (!rowElement) return;
    e.preventDefault();
    const next = Math.min(items.length - 1, Math.max(0, Number(rowElement.getAttribute('data-index')) + step));
    if (next * height < b.scrollTop) b.scrollTop = next * height;
    if ((next + 1) * height > b.scrollTop + b.clientHeight) b.scrollTop = (next + 1) * height - b.clientHeight;
    measure();
    requestAnimationFrame(() => b.querySelector<HTMLElement>(`[data-index="${next}"] a, [data-index="${next}"] button`)?.focus());
  };

  return (
    <div className="vlist" ref={box} onScroll={measure} onKeyDown={handleKeyDown}>
      <ul style={{ height: items.length * height }} aria-label={label}>
        {items.slice(from, to).map((item, i) => (
          <li
            key={keyOf(item)}
            data-index={from + i}
            aria-setsize={items.length}
            aria-posinset={from + i + 1}
            style={{ transform: `translateY(${(from + i) * height}px)`, height }}
          >
            {row(item, from + i)}
          </li>
        ))}
      </ul>
    </div>
  );
}
