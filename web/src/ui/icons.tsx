// SVG paths on a 20 by 20 grid, drawn with one stroke width in the current colour.
const paths = {
  chat: 'M3.5 5.5a2 2 0 0 1 2-2h9a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H9l-3.5 3v-3a2 2 0 0 1-2-2z',
  tools: 'M12.2 3.6a4 4 0 0 0-4.9 5.2l-4 4a1.6 1.6 0 0 0 0 2.3l1.6 1.6a1.6 1.6 0 0 0 2.3 0l4-4a4 4 0 0 0 5.2-4.9l-2.5 2.5-2.3-.6-.6-2.3z',
  code: 'M7 5.5L2.5 10 7 14.5M13 5.5l4.5 4.5-4.5 4.5',
  servers: 'M4 3.5h12v5H4zM4 11.5h12v5H4zM6.8 6h.01M6.8 14h.01M10 6h3.5M10 14h3.5',
  activity: 'M2.5 10.5h3l2.5-6 4 11 2.5-5h3',
  settings: 'M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4',
  search: 'M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM13 13l3.8 3.8',
  plus: 'M10 4v12M4 10h12',
  copy: 'M7.5 7.5h9v9h-9zM12.5 7.5v-4h-9v9h4',
  check: 'M4 10.5l4 4 8-9',
  close: 'M5 5l10 10M15 5L5 15',
  down: 'M5 8l5 5 5-5',
  right: 'M8 5l5 5-5 5',
  back: 'M12 5l-5 5 5 5',
  play: 'M6.5 4.5v11l9-5.5z',
  stop: 'M5.5 5.5h9v9h-9z',
  pause: 'M7 4.5v11M13 4.5v11',
  refresh: 'M16 6.5A7 7 0 1 0 17 10M16.5 3v4h-4',
  trash: 'M4 6h12M8 6V3.8h4V6M5.5 6l.8 10.2h7.4L14.5 6M8.5 9v4.5M11.5 9v4.5',
  edit: 'M4 16l.8-3.4L13 4.4a1.4 1.4 0 0 1 2 0l.6.6a1.4 1.4 0 0 1 0 2L7.4 15.2z',
  download: 'M10 3.5v9M6 9l4 4 4-4M4 16.5h12',
  upload: 'M10 13V4M6 7.5l4-4 4 4M4 16.5h12',
  sun: 'M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1M15.7 4.3l-1.1 1.1M5.4 14.6l-1.1 1.1',
  moon: 'M16.5 11.8A7 7 0 0 1 8.2 3.5a7 7 0 1 0 8.3 8.3z',
  system: 'M3 4h14v9H3zM7.5 16.5h5M10 13v3.5',
  alert: 'M10 3.5l7.5 13h-15zM10 8.5v3.5M10 14.3h.01',
  info: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 9.2V14M10 6.4h.01',
  key: 'M12.5 3.5a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM9.7 10.3L3.5 16.5M5.5 14.5l2 2M13.4 6.6h.01',
  link: 'M8.5 11.5l3-3M9 6l1.5-1.5a3.5 3.5 0 0 1 5 5L14 11M11 14l-1.5 1.5a3.5 3.5 0 0 1-5-5L6 9',
  send: 'M10 16.5v-12M5 9l5-5 5 5',
  menu: 'M3.5 6h13M3.5 10h13M3.5 14h13',
  more: 'M4 10a.6.6 0 1 0 1.2 0a.6.6 0 1 0-1.2 0M9.4 10a.6.6 0 1 0 1.2 0a.6.6 0 1 0-1.2 0M14.8 10a.6.6 0 1 0 1.2 0a.6.6 0 1 0-1.2 0',
  power: 'M10 3v6.5M6 5.5a6 6 0 1 0 8 0',
  spark: 'M10 3l1.7 5.3L17 10l-5.3 1.7L10 17l-1.7-5.3L3 10l5.3-1.7z',
  shield: 'M10 3l6 2.2v4.3c0 3.7-2.6 6.2-6 7.5-3.4-1.3-6-3.8-6-7.5V5.2z',
  out: 'M11 4.5h4.5V9M15.5 4.5L9 11M8 5.5H4.5v10h10V12',
  file: 'M5 3.5h6.5l3.5 3.5v9.5H5zM11.5 3.5V7H15M7.5 10.5h5M7.5 13.5h5',
  clip: 'M13.5 7.5l-5 5a1.6 1.6 0 0 0 2.3 2.3l5.2-5.2a3.4 3.4 0 0 0-4.8-4.8l-5.4 5.4a5.2 5.2 0 0 0 7.3 7.3',
  pin: 'M7 3.5h6l-.8 5 2.3 2.5h-9l2.3-2.5zM10 11v6',
  clock: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 6v4.2l2.8 1.6',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={paths[name]} fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}

/** Logo is Junctor's logo: two lines that meet. */
export function Logo({ size = 24 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" fill="var(--brand)" />
      <g fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round">
        <path d="M6 9h5c6 0 4 14 10 14h5" />
        <path d="M6 23h5c6 0 4-14 10-14h5" opacity=".55" />
      </g>
      <circle cx="16" cy="16" r="3.1" fill="#fff" />
    </svg>
  );
}
