import Form from '@rjsf/core';
import type { RJSFValidationError } from '@rjsf/utils';
import { Component, useEffect, useMemo, type ReactNode } from 'react';
import { Note } from '../ui/ui';
import { fields, templates, widgets } from './fields';
import { prepare } from './prepare';
import { tooCostly, uiFor } from './schema';
import { validatorFor } from './validator';
import { complete, initialValue, withNewItems } from './values';

/** Problem is what is wrong in one place of a form. */
export interface Problem {
  /** The id of the place's field, if it has one. */
  id: string;
  text: string;
}

export function problemsOf(errors: RJSFValidationError[]): Problem[] {
  return errors.map((e) => {
    const path = (e.params?.path as string[] | undefined) ?? [];
    return { id: ['root', ...path].join('_'), text: `${path.join(' › ') || 'The arguments'}: ${e.message ?? 'is invalid'}` };
  });
}

/** firstOf returns the first control, of those of a form in the order of the page, that belongs to a problem. */
export function firstOf<T extends { id: string }>(controls: T[], problems: Problem[]): T | undefined {
  return controls.find((c) => problems.some((p) => c.id === p.id || (p.id !== 'root' && c.id.startsWith(p.id + '_')))) ?? controls.find((c) => c.id !== '');
}

export function focusFirst(formId: string, problems: Problem[]) {
  const form = document.getElementById(formId);
  firstOf([...(form?.querySelectorAll<HTMLElement>('input, select, textarea') ?? [])], problems)?.focus();
}

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
  onInvalid,
  formId,
  words = { none: 'This tool takes no arguments.', broken: 'This schema cannot be shown as a form. Enter the arguments as JSON instead.' },
}: {
  schema: Record<string, unknown>;
  /** undefined: nothing was filled in yet, and the form begins with the schema's defaults. */
  value: unknown;
  onChange: (v: unknown) => void;
  onSubmit: (v: unknown) => void;
  /** Called when a form that is sent has errors. The first field with one has the focus then. */
  onInvalid?: (problems: Problem[]) => void;
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
        noHtml5Validate
        experimental_defaultFormStateBehavior={noDefaults}
        templates={templates}
        onChange={(e) => onChange(complete(prepared, withNewItems(prepared, value ?? initial, e.formData)))}
        onSubmit={(e) => onSubmit(complete(prepared, e.formData))}
        onError={(errors) => {
          const problems = problemsOf(errors);
          onInvalid?.(problems);
          focusFirst(formId, problems);
        }}
      >
        <></>
      </Form>
    </Boundary>
  );
}

// The page fills in the defaults itself, once: see initialValue.
const noDefaults = { emptyObjectFields: 'skipDefaults' } as const;
