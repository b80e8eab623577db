import { Validator, type OutputUnit } from '@cfworker/json-schema';
import type { RJSFSchema, RJSFValidationError, UiSchema, ValidationData, ValidatorType, ErrorSchema, FormContextType, CustomValidator, ErrorTransformer } from '@rjsf/utils';
import { toErrorList, toErrorSchema, validationDataMerge } from '@rjsf/utils';

/**
 * The forms' validator. It walks the schema instead of compiling it to code,
 * which the page's Content-Security-Policy forbids. The gateway checks the
 * arguments again with its own validator, so this one only helps the user.
 */
class WalkingValidator implements ValidatorType {
  /** toolSchema, if given, replaces the prepared schema of the form for validation. */
  constructor(private readonly toolSchema?: object) {}

  validateFormData(data: unknown, schema: RJSFSchema, _custom?: CustomValidator, transform?: ErrorTransformer, ui?: UiSchema): ValidationData<unknown> {
    let errors = validate(this.toolSchema ?? schema, data);
    if (transform) errors = transform(errors, ui);
    const errorSchema = toErrorSchema(errors) as ErrorSchema;
    return validationDataMerge({ errors, errorSchema }, undefined);
  }

  toErrorList(errorSchema?: ErrorSchema, fieldPath: string[] = []): RJSFValidationError[] {
    return toErrorList(errorSchema, fieldPath);
  }

  rawValidation<Result = unknown>(schema: RJSFSchema, data?: unknown): { errors?: Result[]; validationError?: Error } {
    return { errors: validate(schema, data) as Result[] };
  }

  isValid(schema: RJSFSchema, data: unknown, root: RJSFSchema): boolean {
    try {
      // Subschemas refer to the definitions of the root.
      const { $defs, definitions } = (root ?? {}) as { $defs?: object; definitions?: object };
      const schemaWithDefs = { ...($defs ? { $defs } : {}), ...(definitions ? { definitions } : {}), ...(schema as object) };
      return new Validator(schemaWithDefs, '2020-12', true).validate(data).valid;
    } catch {
      return false;
    }
  }

  reset() {}
}

/** Keywords whose errors only repeat those of their subschemas. */
const applicatorKeywords = new Set(['properties', 'items', 'prefixItems', 'allOf', 'anyOf', 'oneOf', '$ref', 'if', 'then', 'else', 'additionalProperties', 'dependentSchemas']);

/** validate returns the errors of a value, at most one for each property. */
export function validate(schema: object, data: unknown): RJSFValidationError[] {
  let errors;
  try {
    // Validate what is sent: JSON omits undefined.
    errors = new Validator(schema, '2020-12', false).validate(JSON.parse(JSON.stringify(data ?? {}))).errors;
  } catch {
    return []; // a schema that cannot be walked; the gateway decides
  }
  const byProperty = new Map<string, RJSFValidationError>();
  const inner = withoutOtherVariants(errors).filter((e) => !applicatorKeywords.has(e.keyword));
  for (const e of inner.length > 0 ? inner : errors.slice(0, 1)) {
    const path = e.instanceLocation.replace(/^#/, '').split('/').slice(1).map((p) => decode(p).replaceAll('~1', '/').replaceAll('~0', '~'));
    let message = e.error.replace(/^Instance /, '');
    if (e.keyword === 'required') {
      const missing = /property "(.+)"/.exec(e.error)?.[1];
      if (missing) path.push(missing);
      message = 'is required';
    }
    const property = path.map((p) => (/^[\w-]+$/.test(p) ? '.' + p : `[${JSON.stringify(p)}]`)).join('');
    if (!byProperty.has(property)) byProperty.set(property, { name: e.keyword, property, message, stack: `${path.join('.')} ${message}`.trim(), params: { path } });
  }
  return [...byProperty.values()];
}

/** withoutOtherVariants removes the errors of union variants that a value does not belong to, if it can belong to another. */
function withoutOtherVariants(errors: OutputUnit[]): OutputUnit[] {
  for (const u of errors.filter((e) => e.keyword === 'anyOf' || e.keyword === 'oneOf')) {
    const variantOf = (e: OutputUnit) => (e.instanceLocation.startsWith(u.instanceLocation) && e.keywordLocation.startsWith(u.keywordLocation + '/') ? e.keywordLocation.slice(u.keywordLocation.length + 1).split('/')[0]! : '');
    // A value of another type, or with another constant in one of its fields, belongs to another variant.
    const excludesVariant = (e: OutputUnit) => (e.keyword === 'type' && e.instanceLocation === u.instanceLocation) || (e.keyword === 'const' && e.instanceLocation.slice(u.instanceLocation.length).split('/').length <= 2);
    const all = new Set(errors.map(variantOf));
    const excluded = new Set(errors.filter(excludesVariant).map(variantOf));
    all.delete('');
    excluded.delete('');
    if (excluded.size > 0 && excluded.size < all.size) errors = errors.filter((e) => !excluded.has(variantOf(e)));
  }
  return errors;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** validatorFor checks the values of a form against the schema that it was made from. */
export function validatorFor(schema: object): ValidatorType<unknown, RJSFSchema, FormContextType> {
  return new WalkingValidator(schema) as ValidatorType<unknown, RJSFSchema, FormContextType>;
}

export default new WalkingValidator() as ValidatorType<unknown, RJSFSchema, FormContextType>;
