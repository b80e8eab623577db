import { useId, useState } from 'react';
import { toJson } from '../lib/format';
import { Button } from '../ui/ui';
import { at, put, written, type Spec } from './schema';

interface Props {
  spec: Spec;
  value: unknown;
  onChange: (v: unknown) => void;
  /** Names the control where no label does. */
  label?: string;
  id?: string;
}

/** usual names the default of a setting. */
export function usual(spec: Spec): string {
  if (spec.default === undefined || spec.default === null || spec.default === '') return '';
  if (spec.kind === 'boolean') return spec.default ? 'on' : 'off';
  return typeof spec.default === 'string' ? spec.default : toJson(spec.default, 0);
}

/** Value is the control for the value of one setting; undefined means that the file does not set it. */
export function Value({ spec, value, onChange, label, id }: Props) {
  const name = { id, 'aria-label': label };
  const none = usual(spec) ? `Default (${usual(spec)})` : 'Not set';
  switch (spec.kind) {
    case 'boolean':
      return (
        <select {...name} value={value === undefined ? '' : String(value)} onChange={(e) => onChange(e.target.value === '' ? undefined : e.target.value === 'true' ? true : e.target.value === 'false' ? false : e.target.value)}>
          <option value="">{none}</option>
          <option value="true">on</option>
          <option value="false">off</option>
          {typeof value === 'string' && <option value={value}>{value}</option>}
        </select>
      );
    case 'choice':
      return (
        <select {...name} value={value === undefined ? '' : String(value)} onChange={(e) => onChange(e.target.value || undefined)}>
          <option value="">{none}</option>
          {[...(spec.choices ?? []), ...(typeof value === 'string' && !spec.choices?.includes(value) ? [value] : [])].map((c) => (
            <option key={c}>{c}</option>
          ))}
        </select>
      );
    case 'number':
      return <input {...name} inputMode="decimal" value={value === undefined ? '' : String(value)} placeholder={usual(spec)} onChange={(e) => onChange(written(e.target.value))} />;
    case 'text':
      return spec.secret ? <Secret {...name} value={value} onChange={onChange} /> : <input {...name} value={typeof value === 'string' ? value : ''} placeholder={usual(spec)} spellCheck={false} onChange={(e) => onChange(e.target.value || undefined)} />;
    case 'texts':
      return <Texts {...name} value={value} onChange={onChange} />;
    case 'objects':
      return <Objects spec={spec} value={value} onChange={onChange} label={label} />;
    default:
      return <Json {...name} value={value} onChange={onChange} />;
  }
}

/** Secret never shows what is stored; what is typed replaces it. */
function Secret({ value, onChange, ...name }: { value: unknown; onChange: (v: unknown) => void; id?: string; 'aria-label'?: string }) {
  const kept = typeof value === 'string' && /^(\[hidden \d+\]|\$\{[^}]+\})$/.test(value) ? value : undefined;
  const [before] = useState(kept);
  return (
    <input
      {...name}
      type="password"
      autoComplete="new-password"
      value={kept !== undefined && kept === before ? '' : typeof value === 'string' ? value : ''}
      placeholder={before === undefined ? 'Stored as a secret in .env' : before.startsWith('$') ? `From ${before.slice(2, -1)}` : 'Stored'}
      onChange={(e) => onChange(e.target.value || before)}
    />
  );
}

function Texts({ value, onChange, ...name }: { value: unknown; onChange: (v: unknown) => void; id?: string; 'aria-label'?: string }) {
  const list = typeof value === 'string' ? [value] : Array.isArray(value) ? value.map(String) : [];
  const [text, setText] = useState(list.join('\n'));
  const same = text.split('\n').filter((l) => l.trim()).join('\n') === list.join('\n');
  return (
    <textarea
      {...name}
      rows={Math.min(6, Math.max(1, text.split('\n').length))}
      placeholder="One per line"
      spellCheck={false}
      value={same ? text : list.join('\n')}
      onChange={(e) => {
        setText(e.target.value);
        const lines = e.target.value.split('\n').map((l) => l.trim()).filter(Boolean);
        onChange(lines.length > 0 ? lines : undefined);
      }}
    />
  );
}

function Json({ value, onChange, ...name }: { value: unknown; onChange: (v: unknown) => void; id?: string; 'aria-label'?: string }) {
  const [text, setText] = useState(value === undefined ? '' : toJson(value));
  const [wrong, setWrong] = useState(false);
  return (
    <textarea
      {...name}
      className="mono"
      rows={Math.min(8, Math.max(1, text.split('\n').length))}
      placeholder="JSON"
      spellCheck={false}
      aria-invalid={wrong || undefined}
      value={text}
      onChange={(e) => {
        setText(e.target.value);
        try {
          onChange(e.target.value.trim() === '' ? undefined : JSON.parse(e.target.value));
          setWrong(false);
        } catch {
          setWrong(true);
        }
      }}
    />
  );
}

/** Objects is a list of objects: rules, models, keys. */
function Objects({ spec, value, onChange, label }: Props) {
  const list: unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
  const change = (next: unknown[]) => onChange(next.length > 0 ? next : undefined);
  return (
    <div className="stack">
      {list.map((one, i) => (
        <ObjectFields key={i} fields={spec.fields ?? []} value={one} onChange={(v) => change(list.map((old, j) => (j === i ? v : old)))} label={`${label ?? spec.key} ${i + 1}`} onRemove={() => change(list.filter((_, j) => j !== i))} />
      ))}
      <div>
        <Button small icon="plus" aria-label={`Add to ${label ?? spec.key}`} onClick={() => onChange([...list, {}])}>
          Add
        </Button>
      </div>
    </div>
  );
}

/** ObjectFields shows the first fields and those that are set; the others on demand. */
export function ObjectFields({ fields, value, onChange, label, onRemove, first = 4 }: { fields: Spec[]; value: unknown; onChange: (v: unknown) => void; label: string; onRemove?: () => void; first?: number }) {
  const [all, setAll] = useState(false);
  const shown = all ? fields : fields.filter((f, i) => i < first || at(value, f.key) !== undefined);
  return (
    <fieldset className="object-fields">
      <legend className="sr-only">{label}</legend>
      {shown.map((f) => (
        <ObjectField key={f.key} spec={f} label={label} value={at(value, f.key)} onChange={(v) => onChange(put(value, f.key, v) ?? {})} />
      ))}
      <div className="row">
        {shown.length < fields.length && (
          <Button small kind="quiet" icon="more" onClick={() => setAll(true)}>
            {fields.length - shown.length} more
          </Button>
        )}
        <span className="grow" />
        {onRemove && (
          <Button small kind="quiet" icon="trash" aria-label={`Remove ${label}`} onClick={onRemove}>
            Remove
          </Button>
        )}
      </div>
    </fieldset>
  );
}

function ObjectField({ spec, value, onChange, label }: { spec: Spec; value: unknown; onChange: (v: unknown) => void; label: string }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id} className="mono">
        {spec.key}
      </label>
      <Value spec={spec} value={value} onChange={onChange} id={id} label={spec.kind === 'objects' ? `${label} ${spec.key}` : undefined} />
      <div className="hint">{spec.description}</div>
    </div>
  );
}
