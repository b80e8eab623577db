import { useState } from 'react';
import { get, send, type GetResponse } from '../lib/api';
import { useQuery } from '../lib/use';
import { ConfirmDialog, Table } from '../ui/grid';
import { Badge, Button, Dialog, EmptyState, ErrorNote, Note, Skeleton, useAction } from '../ui/ui';
import { useConfiguration } from './config';
import { NotAdmin } from './keys';
import { getPath, type SettingSpec } from './schema';
import { ObjectFields } from './value';

/** fieldOrder is the order of the first fields of a model. */
const fieldOrder = ['provider', 'model', 'apiKey', 'baseUrl', 'name'];

/** Models lists the models in use, and edits those of the configuration. Their keys are stored as secrets. */
export function Models() {
  const { admin, config, groups, error, retry } = useConfiguration();
  const models = useQuery<GetResponse<'/api/models'>>('models', (s) => get('/api/models', s));
  const [editing, setEditing] = useState<{ index: number; value: unknown } | null>(null);
  const [removing, setRemoving] = useState<number | null>(null);
  const [busy, act] = useAction();
  if (!admin) return <NotAdmin subject="Models" />;
  if (error) return <ErrorNote error={error} retry={retry} />;
  const fields = groups?.find((g) => g.key === 'llm')?.specs[0]?.fields;
  if (!config.data || !fields || !models.data) return models.error ? <ErrorNote error={models.error} retry={() => void models.reload()} /> : <Skeleton rows={4} />;
  const configured = config.data.values.llm;
  const list: unknown[] = Array.isArray(configured) ? configured : configured === undefined ? [] : [configured];
  const saveModels = (next: unknown[], done: string) =>
    act('write', () => send('PATCH', '/api/config', { set: { llm: next.length > 0 ? next : null } }), done).then((ok) => {
      if (ok) {
        setEditing(null);
        setRemoving(null);
      }
      void config.reload();
      void models.reload();
    });
  return (
    <div className="stack">
      <div className="row">
        <p className="grow muted">The models of the chat. The first is the default.</p>
        <Button kind="primary" icon="plus" onClick={() => setEditing({ index: list.length, value: {} })}>
          Add model
        </Button>
      </div>
      {list.length === 0 &&
        (models.data.models.length > 0 ? (
          <Note>
            In use, from the keys in the environment or a local Ollama: {models.data.models.map((m) => m.id).join(', ')}. Models that you add here replace them.
          </Note>
        ) : (
          <EmptyState icon="spark" title="No model configured">
            Add one with its key. The key is stored in the file .env beside the configuration, readable by you alone.
          </EmptyState>
        ))}
      {list.length > 0 && (
        <Table label="Models" columns={['Model', 'Provider', 'Key', '']}>
          {list.map((m, i) => {
            const id = String(getPath(m, 'name') ?? `${String(getPath(m, 'provider') ?? '')}/${String(getPath(m, 'model') ?? '')}`);
            const key = getPath(m, 'apiKey');
            return (
              <tr key={i}>
                <th scope="row" className="mono">
                  {id} {i === 0 && <Badge tone="accent">default</Badge>}
                </th>
                <td>{String(getPath(m, 'provider') ?? '')}</td>
                <td className="mono">{typeof key !== 'string' ? 'from the environment' : key.startsWith('${') ? key.slice(2, -1) : 'stored'}</td>
                <td>
                  <div className="row end">
                  {i > 0 && (
                    <Button small kind="quiet" aria-label={`Make default: ${id}`} onClick={() => void saveModels([m, ...list.filter((_, j) => j !== i)], `${id} is the default`)}>
                      Make default
                    </Button>
                  )}
                  <Button small kind="quiet" icon="edit" aria-label={`Edit ${id}`} onClick={() => setEditing({ index: i, value: m })} />
                  <Button small kind="quiet" icon="trash" aria-label={`Remove ${id}`} onClick={() => setRemoving(i)} />
                  </div>
                </td>
              </tr>
            );
          })}
        </Table>
      )}
      {editing && (
        <Dialog title={editing.index < list.length ? 'Edit model' : 'Add model'} open onClose={() => setEditing(null)} wide>
          <form
            className="stack"
            onSubmit={(e) => {
              e.preventDefault();
              void saveModels([...list.slice(0, editing.index), editing.value, ...list.slice(editing.index + 1)], 'Saved');
            }}
          >
            <ObjectFields fields={sortFields(fields)} first={4} value={editing.value} label="Model" onChange={(value) => setEditing({ ...editing, value })} />
            <div className="row end">
              <Button onClick={() => setEditing(null)}>Cancel</Button>
              <Button kind="primary" type="submit" busy={busy === 'write'} disabled={!getPath(editing.value, 'provider')}>
                Save
              </Button>
            </div>
          </form>
        </Dialog>
      )}
      {removing !== null && (
        <ConfirmDialog title="Remove the model?" action="Remove" busy={busy === 'write'} onClose={() => setRemoving(null)} onConfirm={() => void saveModels(list.filter((_, j) => j !== removing), 'Removed')}>
          Conversations that use it continue with the default. Its key stays in .env.
        </ConfirmDialog>
      )}
    </div>
  );
}

const rank = (f: SettingSpec) => (fieldOrder.includes(f.key) ? fieldOrder.indexOf(f.key) : fieldOrder.length);
const sortFields = (fields: SettingSpec[]) => [...fields].sort((a, b) => rank(a) - rank(b));
