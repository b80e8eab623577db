// The fields, widgets and templates of the form library.
import { ariaDescribedByIds, deepEquals, enumOptionSelectedValue, enumOptionValueDecoder, enumOptionValueEncoder, getTemplate, getUiOptions, type FieldProps, type FieldTemplateProps, type RegistryFieldsType, type RegistryWidgetsType, type TemplatesType, type WidgetProps } from '@rjsf/utils';
import { useState } from 'react';
import { oneLine, toJson } from '../lib/format';
import { jsonType } from './prepare';

/** parseJsonOrText parses the text of a JSON field; text that is not JSON is a string. */
export function parseJsonOrText(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** jsonOrText returns the text of a JSON field for a value, the inverse of parseJsonOrText. */
export function jsonOrText(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' && parseJsonOrText(value) === value ? value : toJson(value);
}

/** JsonField edits any value, for schemas without a specific type. */
function JsonField({ fieldPathId, formData, schema, name, onChange, disabled, readonly, required }: FieldProps) {
  const [text, setText] = useState(() => jsonOrText(formData));
  // Keep the typed text until the value is changed elsewhere.
  const shown = deepEquals(parseJsonOrText(text), formData) ? text : jsonOrText(formData);
  const type = (schema as Record<string, unknown>)[jsonType];
  return (
    <>
      <textarea
        id={fieldPathId.$id}
        aria-label={schema.title ?? name}
        className="mono"
        rows={Math.min(12, Math.max(type ? 3 : 1, shown.split('\n').length))}
        spellCheck={false}
        value={shown}
        disabled={disabled || readonly}
        aria-required={required}
        aria-describedby={ariaDescribedByIds(fieldPathId.$id)}
        placeholder={type === 'object' ? '{ … }' : type === 'array' ? '[ … ]' : ''}
        onChange={(e) => {
          setText(e.target.value);
          onChange(parseJsonOrText(e.target.value), fieldPathId.path);
        }}
      />
      <div className="help-block">{type === 'object' ? 'A JSON object' : type === 'array' ? 'A JSON list' : 'JSON; any other text is sent as a string'}</div>
    </>
  );
}

/** SelectWidget always has an option for no value, so that it never shows a value that is not sent. */
function SelectWidget({ id, options, value, required, disabled, readonly, multiple = false, onChange, onBlur, onFocus, label, hideLabel, htmlName, schema }: WidgetProps) {
  const { enumOptions = [], emptyValue } = options;
  const isVariantSelect = /__(any|one)of_select$/.test(id);
  const selected = enumOptionSelectedValue(value, enumOptions, multiple, 'indexed', multiple ? [] : '');
  const decode = (v: string | string[]): unknown => enumOptionValueDecoder(v, enumOptions, 'indexed', emptyValue);
  return (
    <select
      id={id}
      name={htmlName || id}
      className="form-control"
      aria-label={isVariantSelect ? `${label || 'Value'}: kind` : hideLabel ? label || 'Choice' : undefined}
      multiple={multiple}
      value={selected}
      required={required}
      disabled={disabled || readonly}
      onBlur={() => onBlur(id, value)}
      onFocus={() => onFocus(id, value)}
      onChange={(e) => onChange(decode(multiple ? Array.from(e.target.selectedOptions, (o) => o.value) : e.target.value))}
      aria-describedby={isVariantSelect ? undefined : ariaDescribedByIds(id)}
    >
      {!multiple && !isVariantSelect && (!required || value === undefined || value === null || schema.default === undefined) && <option value="">{required ? '' : 'Not set'}</option>}
      {enumOptions.map((o, i) => (
        <option key={i} value={enumOptionValueEncoder(o.value, i, 'indexed')}>
          {o.label}
        </option>
      ))}
    </select>
  );
}

/** FieldTemplate is a field with its label, its description and its default. */
function FieldTemplate(props: FieldTemplateProps) {
  const { id, label, children, errors, help, description, hidden, required, displayLabel, registry, uiSchema, schema, formData } = props;
  const options = getUiOptions(uiSchema);
  const Wrap = getTemplate('WrapIfAdditionalTemplate', registry, options);
  if (hidden) return <div className="hidden">{children}</div>;
  if ('const' in schema) {
    return (
      <Wrap {...props}>
        <span className="control-label">{label}</span> <code id={id}>{oneLine(schema.const, 200)}</code>
        {errors}
      </Wrap>
    );
  }
  const initial = schema.default;
  const showLabel = displayLabel && options.widget !== 'checkbox';
  return (
    <Wrap {...props}>
      {showLabel && (
        <label className="control-label" htmlFor={id}>
          {label}
          {required && <span className="required">*</span>}
        </label>
      )}
      {displayLabel && description}
      {children}
      {initial !== undefined && id !== 'root' && (
        <div className="default small" id={`${id}__default`}>
          {deepEquals(formData, initial) ? 'This is the default.' : `Default: ${oneLine(initial, 80)}`}
        </div>
      )}
      {errors}
      {help}
    </Wrap>
  );
}

export const fields: RegistryFieldsType = { FallbackField: JsonField };

export const widgets: RegistryWidgetsType = { SelectWidget };

export const templates: Partial<TemplatesType> = {
  FieldTemplate,
  // The page shows the title and description of the tool above the form.
  TitleFieldTemplate: ({ id, title }) => (id === 'root__title' ? null : <h4 id={id}>{title}</h4>),
  DescriptionFieldTemplate: ({ id, description }) => (id === 'root__description' || !description ? null : <p id={id} className="hint field-description">{description}</p>),
  ButtonTemplates: {
    SubmitButton: () => null,
    AddButton: (p) => <button type="button" className="button small" onClick={p.onClick} disabled={p.disabled}>+ Add</button>,
    CopyButton: () => null,
    ClearButton: () => null,
    MoveDownButton: (p) => <button type="button" className="button small square quiet" aria-label="Move down" onClick={p.onClick} disabled={p.disabled}>↓</button>,
    MoveUpButton: (p) => <button type="button" className="button small square quiet" aria-label="Move up" onClick={p.onClick} disabled={p.disabled}>↑</button>,
    RemoveButton: (p) => <button type="button" className="button small square quiet" aria-label="Remove" onClick={p.onClick} disabled={p.disabled}>×</button>,
  },
};
