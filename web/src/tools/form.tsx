import Form from '@rjsf/core';
import type { TemplatesType } from '@rjsf/utils';
import { Component, useMemo, type ReactNode } from 'react';
import { Note } from '../ui/ui';
import { prepare, tooCostly, uiFor } from './schema';
import { validator } from './validator';

/** Boundary shows fallback when rendering a form throws. */
class Boundary extends Component<{ children: ReactNode; fallback: ReactNode }, { failed: boolean }> {
  override state = { failed: false };
  static getDerivedStateFromError() {
    return { failed: true };
  }
  override render() {
    return this.state.failed ? this.props.fallback : this.props.children;
  }
}

export function SchemaForm({
  schema,
  value,
  onChange,
  onSubmit,
  formId,
  defaults = false,
  words = { none: 'This tool takes no arguments.', broken: 'This schema cannot be shown as a form. Enter the arguments as JSON instead.' },
}: {
  schema: Record<string, unknown>;
  value: unknown;
  onChange: (v: unknown) => void;
  onSubmit: (v: unknown) => void;
  formId: string;
  /** Fill in the schema's defaults instead of leaving them to the receiver. */
  defaults?: boolean;
  words?: { none: string; broken: string };
}) {
  const prepared = useMemo(() => prepare(schema), [schema]);
  const uiSchema = useMemo(() => uiFor(prepared), [prepared]);
  const costly = useMemo(() => tooCostly(schema), [schema]);
  if (costly) return <Note tone="warn">{words.broken}</Note>;
  const none = Object.keys(prepared.properties ?? {}).length === 0 && !prepared.anyOf && !prepared.oneOf && !prepared.allOf && !prepared.$ref && !prepared.additionalProperties;
  return (
    <Boundary fallback={<Note tone="warn">{words.broken}</Note>}>
      {none && words.none && <p className="muted">{words.none}</p>}
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
        experimental_defaultFormStateBehavior={defaults ? filled : sparse}
        templates={templates}
        onChange={(e) => onChange(e.formData)}
        onSubmit={(e) => onSubmit(e.formData)}
        onError={() => {}} // errors are shown next to the fields
      >
        <></>
      </Form>
    </Boundary>
  );
}

const filled = { emptyObjectFields: 'populateAllDefaults' } as const;
const sparse = { emptyObjectFields: 'skipDefaults' } as const;

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
