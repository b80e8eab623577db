import { Validator } from '@cfworker/json-schema';
import type { RJSFSchema, RJSFValidationError, UiSchema, ValidationData, ValidatorType, ErrorSchema, FormContextType, CustomValidator, ErrorTransformer } from '@rjsf/utils';
import { toErrorList, toErrorSchema, validationDataMerge } from '@rjsf/utils';

/**
 * The forms' validator. It walks the schema instead of compiling it to code,
 * which the page's Content-Security-Policy forbids. The gateway checks the
 * arguments again with its own validator, so this one only has to help.
 */
class WalkingValidator implements ValidatorType {
  validateFormData(data: unknown, schema: RJSFSchema, _custom?: CustomValidator, transform?: ErrorTransformer, ui?: UiSchema): ValidationData<unknown> {
    let errors = check(schema, data);
    if (transform) errors = transform(errors, ui);
    const errorSchema = toErrorSchema(errors) as ErrorSchema;
    return validationDataMerge({ errors, errorSchema }, undefined);
  }

  toErrorList(errorSchema?: ErrorSchema, fieldPath: string[] = []): RJSFValidationError[] {
    return toErrorList(errorSchema, fieldPath);
  }

  rawValidation<Result = unknown>(schema: RJSFSchema, data?: unknown): { errors?: Result[]; validationError?: Error } {
    return { errors: check(schema, data) as Result[] };
  }

  isValid(schema: RJSFSchema, data: unknown, root: RJSFSchema): boolean {
    try {
      // Parts of a schema refer to the definitions of the whole.
      const { $defs, definitions } = (root ?? {}) as { $defs?: object; definitions?: object };
      const whole = { ...($defs ? { $defs } : {}), ...(definitions ? { definitions } : {}), ...(schema as object) };
      return new Validator(whole, '2020-12', true).validate(data).valid;
    } catch {
      return false;
    }
  }

  reset() {}
}

function check(schema: RJSFSchema, data: unknown): RJSFValidationError[] {
  let found;
  try {
    found = new Validator(schema as object, '2020-12', false).validate(data).errors;
  } catch {
    return []; // a schema that cannot be walked; the gateway decides
  }
  return found
    .filter((e) => !['properties', 'items', 'allOf', 'anyOf', 'oneOf', '$ref', 'if', 'then', 'else', 'additionalProperties'].includes(e.keyword) || found.length === 1)
    .map((e) => {
      const path = e.instanceLocation.replace(/^#/, '').split('/').slice(1).map((p) => p.replaceAll('~1', '/').replaceAll('~0', '~'));
      let message = e.error;
      if (e.keyword === 'required') {
        const missing = /property "(.+)"/.exec(e.error)?.[1];
        if (missing) path.push(missing);
        message = 'is required';
      }
      const property = path.map((p) => '.' + p).join('');
      return { name: e.keyword, property, message, stack: `${path.join('.')} ${message}`.trim(), params: {} };
    });
}

export const validator = new WalkingValidator() as ValidatorType<unknown, RJSFSchema, FormContextType>;

export default validator;
