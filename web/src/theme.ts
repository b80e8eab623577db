import { useSyncExternalStore } from 'react';

export type Theme = 'system' | 'light' | 'dark';
const key = 'junctor.theme';
const listeners = new Set<() => void>();

function currentTheme(): Theme {
  const t = document.documentElement.dataset.theme;
  return t === 'light' || t === 'dark' ? t : 'system';
}

export function setTheme(t: Theme) {
  if (t === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
  try {
    if (t === 'system') localStorage.removeItem(key);
    else localStorage.setItem(key, t);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  for (const f of listeners) f();
}

export function useTheme(): Theme {
  return useSyncExternalStore((f) => {
    listeners.add(f);
    return () => listeners.delete(f);
  }, currentTheme);
}
