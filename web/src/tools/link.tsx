import { useMemo, type ReactNode } from 'react';
import { toolHref } from './arguments';

/** ToolLink opens the form of a tool with arguments. */
export function ToolLink({ server, tool, args, children }: { server: string; tool: string; args: unknown; children: ReactNode }) {
  const to = useMemo(() => toolHref(server, tool, args), [server, tool, args]);
  return (
    <a className="small" href={to}>
      {children}
    </a>
  );
}
