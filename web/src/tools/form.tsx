import Form from '@rjsf/core';
import { Component, useEffect, useMemo, type ReactNode } from 'react';
import { Note } from '../ui/ui';
import { fields, templates, widgets } from './fields';
import { prepare } from './prepare';
import { tooCostly, uiFor } from './schema';
import { validatorFor } from './validator';
import { complete, initialValue, withNewItems } from './values';

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
  words = { none: 'This tool takes no arguments.', broken: 'This schema cannot be shown as a form. Enter the arguments as JSON instead.' },
}: {
  schema: Record<string, unknown>;
  /** undefined: nothing was filled in yet, and the form begins with the schema's defaults. */
  value: unknown;
  onChange: (v: unknown) => void;
  onSubmit: (v: unknown) => void;
  formId: string;
  words?: { none: string; broken: string };
}) {
  const costly = useMemo(() => tooCostly(schema), [schema]);
  const prepared = useMemo(() => (costly ? {} : prepare(schema)), [costly, schema]);
  const uiSchema = useMemo(() => uiFor(prepared), [prepared]);
  const validator = useMemo(() => validatorFor(schema), [schema]);
  const initial = useMemo(() => initialValue(prepared), [prepared]);
  const untouched = value === undefined && !costly;
  useEffect(() => {
    if (untouched) onChange(initial);
  }, [untouched, initial]);
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
        formData={value ?? initial}
        fields={fields}
        widgets={widgets}
        omitExtraData={false}
        showErrorList={false}
        focusOnFirstError
        noHtml5Validate
        experimental_defaultFormStateBehavior={noDefaults}
        templates={templates}
        onChange={(e) => onChange(complete(prepared, withNewItems(prepared, value ?? initial, e.formData)))}
        onSubmit={(e) => onSubmit(complete(prepared, e.formData))}
        onError={() => {}} // errors are shown next to the fields
      >
        <></>
      </Form>
    </Boundary>
  );
}

// The page fills in the defaults itself, once: see initialValue.
const noDefaults = { emptyObjectFields: 'skipDefaults' } as const;
