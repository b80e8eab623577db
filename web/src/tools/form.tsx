import Form from '@rjsf/core';
import type { RJSFValidationError } from '@rjsf/utils';
import { Component, useEffect, useMemo, type ReactNode } from 'react';
import { Note } from '../ui/ui';
import { fields, templates, widgets } from './fields';
import { prepare } from './prepare';
import { isTooComplex, uiSchemaFor } from './schema';
import { validatorFor } from './validator';
import { initialValue, valueToSend, withNewItems } from './values';

/** FormProblem is a validation error of one field of a form. */
export interface FormProblem {
  /** The id of the field, if there is one. */
  id: string;
  text: string;
}

export function formProblems(errors: RJSFValidationError[]): FormProblem[] {
  return errors.map((e) => {
    const path = (e.params?.path as string[] | undefined) ?? [];
    return { id: ['root', ...path].join('_'), text: `${path.join(' › ') || 'The arguments'}: ${e.message ?? 'is invalid'}` };
  });
}

/** firstProblemControl returns the first of a form's controls, in document order, that belongs to a problem. */
export function firstProblemControl<T extends { id: string }>(controls: T[], problems: FormProblem[]): T | undefined {
  return controls.find((c) => problems.some((p) => c.id === p.id || (p.id !== 'root' && c.id.startsWith(p.id + '_')))) ?? controls.find((c) => c.id !== '');
}

export function focusFirstProblem(formId: string, problems: FormProblem[]) {
  const form = document.getElementById(formId);
  firstProblemControl([...(form?.querySelectorAll<HTMLElement>('input, select, textarea') ?? [])], problems)?.focus();
}

/** ErrorBoundary shows fallback when rendering a form throws. */
class ErrorBoundary extends Component<{ children: ReactNode; fallback: ReactNode }, { failed: boolean }> {
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
  onInvalid,
  formId,
  messages = { noFields: 'This tool takes no arguments.', unsupported: 'This schema cannot be shown as a form. Enter the arguments as JSON instead.' },
}: {
  schema: Record<string, unknown>;
  /** undefined: nothing was filled in yet, and the form starts with the schema's defaults. */
  value: unknown;
  onChange: (v: unknown) => void;
  onSubmit: (v: unknown) => void;
  /** Called when a submitted form has errors. The first invalid field then has the focus. */
  onInvalid?: (problems: FormProblem[]) => void;
  formId: string;
  messages?: { noFields: string; unsupported: string };
}) {
  const tooComplex = useMemo(() => isTooComplex(schema), [schema]);
  const prepared = useMemo(() => (tooComplex ? {} : prepare(schema)), [tooComplex, schema]);
  const uiSchema = useMemo(() => uiSchemaFor(prepared), [prepared]);
  const validator = useMemo(() => validatorFor(schema), [schema]);
  const initial = useMemo(() => initialValue(prepared), [prepared]);
  const untouched = value === undefined && !tooComplex;
  useEffect(() => {
    if (untouched) onChange(initial);
  }, [untouched, initial]);
  if (tooComplex) return <Note tone="warn">{messages.unsupported}</Note>;
  const noFields = Object.keys(prepared.properties ?? {}).length === 0 && !prepared.anyOf && !prepared.oneOf && !prepared.allOf && !prepared.$ref && !prepared.additionalProperties;
  return (
    <ErrorBoundary fallback={<Note tone="warn">{messages.unsupported}</Note>}>
      {noFields && messages.noFields && <p className="muted">{messages.noFields}</p>}
      <Form
        id={formId}
        className={`rjsf ${noFields ? 'none' : ''}`}
        schema={prepared}
        uiSchema={uiSchema}
        validator={validator}
        formData={value ?? initial}
        fields={fields}
        widgets={widgets}
        omitExtraData={false}
        showErrorList={false}
        noHtml5Validate
        experimental_defaultFormStateBehavior={noDefaults}
        templates={templates}
        onChange={(e) => onChange(valueToSend(prepared, withNewItems(prepared, value ?? initial, e.formData)))}
        onSubmit={(e) => onSubmit(valueToSend(prepared, e.formData))}
        onError={(errors) => {
          const problems = formProblems(errors);
          onInvalid?.(problems);
          focusFirstProblem(formId, problems);
        }}
      >
        <></>
      </Form>
    </ErrorBoundary>
  );
}

// The page fills in the defaults itself, once: see initialValue.
const noDefaults = { emptyObjectFields: 'skipDefaults' } as const;
