import { useId, useState } from 'react';
import { toJson } from '../lib/format';
import { Button } from '../ui/ui';
import { getPath, parseNumberOrText, setPath, type SettingSpec } from './schema';

interface Props {
  spec: SettingSpec;
  value: unknown;
  onChange: (v: unknown) => void;
  /** The aria-label of a control without a label element. */
  label?: string;
  id?: string;
}

/** defaultText returns the default of a setting as text. */
export function defaultText(spec: SettingSpec): string {
  if (spec.default === undefined || spec.default === null || spec.default === '') return '';
  if (spec.kind === 'boolean') return spec.default ? 'on' : 'off';
  return typeof spec.default === 'string' ? spec.default : toJson(spec.default, 0);
}

/** SettingControl is the control for the value of one setting; undefined means that the file does not set it. */
export function SettingControl({ spec, value, onChange, label, id }: Props) {
  const labelProps = { id, 'aria-label': label };
  const unsetLabel = defaultText(spec) ? `Default (${defaultText(spec)})` : 'Not set';
  switch (spec.kind) {
    case 'boolean':
      return (
        <select {...labelProps} value={value === undefined ? '' : String(value)} onChange={(e) => onChange(e.target.value === '' ? undefined : e.target.value === 'true' ? true : e.target.value === 'false' ? false : e.target.value)}>
          <option value="">{unsetLabel}</option>
          <option value="true">on</option>
          <option value="false">off</option>
          {typeof value === 'string' && <option value={value}>{value}</option>}
        </select>
      );
    case 'choice':
      return (
        <select {...labelProps} value={value === undefined ? '' : String(value)} onChange={(e) => onChange(e.target.value || undefined)}>
          <option value="">{unsetLabel}</option>
          {[...(spec.choices ?? []), ...(typeof value === 'string' && !spec.choices?.includes(value) ? [value] : [])].map((c) => (
            <option key={c}>{c}</option>
          ))}
        </select>
      );
    case 'number':
      return <input {...labelProps} inputMode="decimal" value={value === undefined ? '' : String(value)} placeholder={defaultText(spec)} onChange={(e) => onChange(parseNumberOrText(e.target.value))} />;
    case 'text':
      return spec.secret ? <SecretInput {...labelProps} value={value} onChange={onChange} /> : <input {...labelProps} value={typeof value === 'string' ? value : ''} placeholder={defaultText(spec)} spellCheck={false} onChange={(e) => onChange(e.target.value || undefined)} />;
    case 'texts':
      return <TextListInput {...labelProps} value={value} onChange={onChange} />;
    case 'objects':
      return <ObjectList spec={spec} value={value} onChange={onChange} label={label} />;
    default:
      return <JsonInput {...labelProps} value={value} onChange={onChange} />;
  }
}

/** SecretInput never shows the stored secret; typed text replaces it. */
function SecretInput({ value, onChange, ...name }: { value: unknown; onChange: (v: unknown) => void; id?: string; 'aria-label'?: string }) {
  const storedValue = typeof value === 'string' && /^(\[hidden \d+\]|\$\{[^}]+\})$/.test(value) ? value : undefined;
  const [initialStored] = useState(storedValue);
  return (
    <input
      {...name}
      type="password"
      autoComplete="new-password"
      value={storedValue !== undefined && storedValue === initialStored ? '' : typeof value === 'string' ? value : ''}
      placeholder={initialStored === undefined ? 'Stored as a secret in .env' : initialStored.startsWith('$') ? `From ${initialStored.slice(2, -1)}` : 'Stored'}
      onChange={(e) => onChange(e.target.value || initialStored)}
    />
  );
}

function TextListInput({ value, onChange, ...name }: { value: unknown; onChange: (v: unknown) => void; id?: string; 'aria-label'?: string }) {
  const list = typeof value === 'string' ? [value] : Array.isArray(value) ? value.map(String) : [];
  const [text, setText] = useState(list.join('\n'));
  const unchanged = text.split('\n').filter((l) => l.trim()).join('\n') === list.join('\n');
  return (
    <textarea
      {...name}
      rows={Math.min(6, Math.max(1, text.split('\n').length))}
      placeholder="One per line"
      spellCheck={false}
      value={unchanged ? text : list.join('\n')}
      onChange={(e) => {
        setText(e.target.value);
        const lines = e.target.value.split('\n').map((l) => l.trim()).filter(Boolean);
        onChange(lines.length > 0 ? lines : undefined);
      }}
    />
  );
}

function JsonInput({ value, onChange, ...name }: { value: unknown; onChange: (v: unknown) => void; id?: string; 'aria-label'?: string }) {
  const [text, setText] = useState(value === undefined ? '' : toJson(value));
  const [invalid, setInvalid] = useState(false);
  return (
    <textarea
      {...name}
      className="mono"
      rows={Math.min(8, Math.max(1, text.split('\n').length))}
      placeholder="JSON"
      spellCheck={false}
      aria-invalid={invalid || undefined}
      value={text}
      onChange={(e) => {
        setText(e.target.value);
        try {
          onChange(e.target.value.trim() === '' ? undefined : JSON.parse(e.target.value));
          setInvalid(false);
        } catch {
          setInvalid(true);
        }
      }}
    />
  );
}

/** ObjectList edits a list of objects, such as rules, models or keys. */
function ObjectList({ spec, value, onChange, label }: Props) {
  const list: unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
  const change = (next: unknown[]) => onChange(next.length > 0 ? next : undefined);
  return (
    <div className="stack">
      {list.map((item, i) => (
        <ObjectFields key={i} fields={spec.fields ?? []} value={item} onChange={(v) => change(list.map((old, j) => (j === i ? v : old)))} label={`${label ?? spec.key} ${i + 1}`} onRemove={() => change(list.filter((_, j) => j !== i))} />
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
export function ObjectFields({ fields, value, onChange, label, onRemove, first = 4 }: { fields: SettingSpec[]; value: unknown; onChange: (v: unknown) => void; label: string; onRemove?: () => void; first?: number }) {
  const [showAll, setShowAll] = useState(false);
  const shown = showAll ? fields : fields.filter((f, i) => i < first || getPath(value, f.key) !== undefined);
  return (
    <fieldset className="object-fields">
      <legend className="sr-only">{label}</legend>
      {shown.map((f) => (
        <ObjectField key={f.key} spec={f} label={label} value={getPath(value, f.key)} onChange={(v) => onChange(setPath(value, f.key, v) ?? {})} />
      ))}
      <div className="row">
        {shown.length < fields.length && (
          <Button small kind="quiet" icon="more" onClick={() => setShowAll(true)}>
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

function ObjectField({ spec, value, onChange, label }: { spec: SettingSpec; value: unknown; onChange: (v: unknown) => void; label: string }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id} className="mono">
        {spec.key}
      </label>
      <SettingControl spec={spec} value={value} onChange={onChange} id={id} label={spec.kind === 'objects' ? `${label} ${spec.key}` : undefined} />
      <div className="hint">{spec.description}</div>
    </div>
  );
}
