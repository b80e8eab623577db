import { useState } from 'react';
import { ApiError, signIn } from './lib/api';
import { Logo } from './ui/icons';
import { Button, ErrorNote, Field } from './ui/ui';

/** SignIn exchanges an API key for a session, or sends the user to the provider. */
export function SignIn({ onDone, onCancel, provider }: { onDone: () => void; onCancel?: () => void; provider?: string }) {
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      await signIn({ key: key.trim() });
      onDone();
    } catch (e) {
      setError(e instanceof ApiError ? e : new ApiError(0, '', String(e)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="signin">
      <form
        className="card"
        onSubmit={(e) => {
          e.preventDefault();
          void submit();
        }}
      >
        <div className="row">
          <Logo size={36} />
          <h1>Junctor</h1>
        </div>
        {provider && (
          <Button kind="primary" onClick={() => location.assign('/api/oidc/start')}>
            Sign in with {provider}
          </Button>
        )}
        <p className="muted">{provider ? 'Or use an API key.' : onCancel ? 'Sign in with an API key to use its permissions.' : 'This gateway requires an API key.'}</p>
        <Field label="API key" hint={<>An administrator can create one with <code>junctor keys add NAME</code></>}>
          {(id) => <input id={id} type="password" className="mono" autoComplete="current-password" autoFocus={!provider} required value={key} onChange={(e) => setKey(e.target.value)} />}
        </Field>
        {error && <ErrorNote error={error} />}
        <Button kind={provider ? 'plain' : 'primary'} type="submit" busy={busy} disabled={!key.trim()}>
          Sign in
        </Button>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
      </form>
    </main>
  );
}
