import Form from '@rjsf/core';
import type { RJSFSchema, UiSchema, TemplatesType } from '@rjsf/utils';
import { Component, useMemo, type ReactNode } from 'react';
import { Note } from '../ui/ui';
import { validator } from './validator';

/** A form that cannot be made from a schema must not take the page with it. */
class Boundary extends Component<{ children: ReactNode; fallback: ReactNode }, { failed: boolean }> {
  override state = { failed: false };
  static getDerivedStateFromError() {
    return { failed: true };
  }
  override render() {
    return this.state.failed ? this.props.fallback : this.props.children;
  }
}

const ui: UiSchema = { 'ui:submitButtonOptions': { norender: true } };

/** Long texts get room: what a schema says about a string's use. */
function uiFor(schema: RJSFSchema): UiSchema {
  const out: UiSchema = { ...ui };
  for (const [name, raw] of Object.entries(schema.properties ?? {})) {
    const p = raw as RJSFSchema;
    if (p?.type === 'string' && !p.enum && !p.format && /^(content|text|body|message|prompt|query|code|sql|description|markdown|html|script|data)$/i.test(name)) {
      out[name] = { 'ui:widget': 'textarea', 'ui:options': { rows: 3 } };
    }
  }
  return out;
}

/** Drafts of JSON Schema that the form need not know, and a root that is an object in any case. */
function prepare(schema: Record<string, unknown>): RJSFSchema {
  const { $schema: _, $id: __, ...rest } = schema;
  return { type: 'object', ...rest } as RJSFSchema;
}

export function SchemaForm({
  schema,
  value,
  onChange,
  onSubmit,
  formId,
}: {
  schema: Record<string, unknown>;
  value: unknown;
  onChange: (v: unknown) => void;
  onSubmit: (v: unknown) => void;
  formId: string;
}) {
  const prepared = useMemo(() => prepare(schema), [schema]);
  const uiSchema = useMemo(() => uiFor(prepared), [prepared]);
  const none = Object.keys(prepared.properties ?? {}).length === 0 && !prepared.anyOf && !prepared.oneOf && !prepared.allOf && !prepared.$ref && !prepared.additionalProperties;
  return (
    <Boundary fallback={<Note tone="warn">No form can be made from this schema. Write the arguments as JSON instead.</Note>}>
      {none && <p className="muted">This tool takes no arguments.</p>}
      <Form
        id={formId}
        className={`rjsf ${none ? 'none' : ''}`}
        schema={prepared}
        uiSchema={uiSchema}
        validator={validator}
        formData={value}
        omitExtraData={false}
        showErrorList={false}
        focusOnFirstError
        noHtml5Validate
        experimental_defaultFormStateBehavior={{ emptyObjectFields: 'skipDefaults' }}
        templates={templates}
        onChange={(e) => onChange(e.formData)}
        onSubmit={(e) => onSubmit(e.formData)}
        onError={() => {}} // it is shown beside the fields
      >
        <></>
      </Form>
    </Boundary>
  );
}

const templates: Partial<TemplatesType> = {
  // The root's title and description stand above the form already.
  TitleFieldTemplate: ({ id, title }) => (id === 'root__title' ? null : <h4 id={id}>{title}</h4>),
  DescriptionFieldTemplate: ({ id, description }) => (id === 'root__description' || !description ? null : <p id={id} className="hint">{description}</p>),
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
