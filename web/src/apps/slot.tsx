import { lazy, Suspense, useEffect, useState, useSyncExternalStore } from 'react';
import { get, type ToolList } from '../lib/api';
import { Button, Skeleton } from '../ui/ui';
import type { AppProps } from './app';

// The code for apps is loaded with the first app.
const AppView = lazy(() => import('./app').then((m) => ({ default: m.AppView })));

/** AppSlot shows an app, or a button that opens it. */
export function AppSlot({ open: initiallyOpen, ...app }: Omit<AppProps, 'onClose'> & { open: boolean }) {
  const [open, setOpen] = useState(initiallyOpen);
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

let appUris = new Map<string, string>();
let loadedAt = -Infinity;
const listeners = new Set<() => void>();

/** loadApps loads which tools have an app, at most every 10 seconds. */
function loadApps() {
  if (performance.now() - loadedAt < 10_000) return;
  loadedAt = performance.now();
  get<ToolList>('/api/tools?state=app').then(
    (list) => {
      appUris = new Map(list.tools.map((t) => [t.name, t.app ?? '']));
      for (const f of listeners) f();
    },
    () => (loadedAt = -Infinity), // the next tool call retries
  );
}

const subscribe = (f: () => void) => (listeners.add(f), () => void listeners.delete(f));

/** useApp returns the URI of the app for a tool's results, or ''. */
export function useApp(tool: string): string {
  const uri = useSyncExternalStore(subscribe, () => appUris.get(tool) ?? '');
  useEffect(() => {
    if (!appUris.has(tool)) loadApps();
  }, [tool]);
  return uri;
}
