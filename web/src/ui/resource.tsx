import { createContext, useContext, useState } from 'react';
import { ApiError, send } from '../lib/api';
import { Badge, Button, ErrorNote } from './ui';

/** ServerContext names the server whose result is shown, so that its resource links can be opened. */
export const ServerContext = createContext('');

export interface ResourceContents {
  uri?: string;
  mimeType?: string;
  text?: string;
  blob?: string;
}

/** readResource reads a resource of a server. */
export async function readResource(server: string, uri: string): Promise<ResourceContents[]> {
  const { result } = await send<{ result: { contents?: ResourceContents[] } }>('POST', `/api/servers/${encodeURIComponent(server)}/request`, { method: 'resources/read', params: { uri } });
  return result.contents ?? [];
}

interface ResourceLinkBlock {
  uri?: string;
  name?: string;
  title?: string;
  description?: string;
}

/** ResourceLink shows a resource_link of a result, and the contents of the resource when it is opened. */
export function ResourceLink({ link, show }: { link: ResourceLinkBlock; show: (c: ResourceContents, i: number) => React.ReactNode }) {
  const server = useContext(ServerContext);
  const [state, setState] = useState<{ busy?: boolean; error?: ApiError; contents?: ResourceContents[] }>({});
  const open = () => {
    setState({ busy: true });
    readResource(server, link.uri ?? '').then(
      (contents) => setState({ contents }),
      (e: unknown) => setState({ error: e instanceof ApiError ? e : new ApiError(0, '', String(e)) }),
    );
  };
  return (
    <div className="resource">
      <div className="row">
        <Badge>resource</Badge> <strong className="grow">{link.title || link.name || link.uri}</strong>
        {server && link.uri && !state.contents && (
          <Button small icon="right" busy={state.busy} onClick={open}>
            Open
          </Button>
        )}
      </div>
      <div className="muted small wrap mono">{link.uri}</div>
      {link.description && <div className="wrap">{link.description}</div>}
      {state.error && <ErrorNote error={state.error} />}
      {state.contents?.map(show)}
      {state.contents?.length === 0 && <p className="muted">The resource is empty.</p>}
    </div>
  );
}
