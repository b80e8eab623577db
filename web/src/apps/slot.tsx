import { lazy, Suspense, useEffect, useState, useSyncExternalStore } from 'react';
import { get, type ToolList } from '../lib/api';
import { Button, Skeleton } from '../ui/ui';
import type { AppProps } from './app';

// What shows an app is loaded with the first one.
const AppView = lazy(() => import('./app').then((m) => ({ default: m.AppView })));

/** AppSlot is the place of an app: a button, or the app. */
export function AppSlot({ open: first, ...app }: Omit<AppProps, 'onClose'> & { open: boolean }) {
  const [open, setOpen] = useState(first);
  if (!open) {
    return (
      <div className="row">
        <Button small icon="play" onClick={() => setOpen(true)}>
          Show app
        </Button>
      </div>
    );
  }
  return (
    <Suspense fallback={<Skeleton rows={1} height={120} />}>
      <AppView {...app} onClose={() => setOpen(false)} />
    </Suspense>
  );
}

let apps = new Map<string, string>();
let read = -Infinity;
const listeners = new Set<() => void>();

/** refresh reads which tools have an app, unless that was done a moment ago. */
function refresh() {
  if (performance.now() - read < 10_000) return;
  read = performance.now();
  get<ToolList>('/api/tools?state=app').then(
    (list) => {
      apps = new Map(list.tools.map((t) => [t.name, t.app ?? '']));
      for (const f of listeners) f();
    },
    () => (read = -Infinity), // a later call of a tool tries again
  );
}

const subscribe = (f: () => void) => (listeners.add(f), () => void listeners.delete(f));

/** useApp returns the address of the app that shows a tool's results, or ''. */
export function useApp(tool: string): string {
  const uri = useSyncExternalStore(subscribe, () => apps.get(tool) ?? '');
  useEffect(() => {
    if (!apps.has(tool)) refresh();
  }, [tool]);
  return uri;
}
