import { createContext, useContext } from 'react';

/** Me is the current caller, as reported by the gateway. */
export interface Me {
  caller: string;
  admin: boolean;
  authenticated: boolean;
  signOut: () => void;
  /** Shows the sign-in form. */
  signIn: () => void;
}

export const MeContext = createContext<Me>({ caller: '', admin: false, authenticated: false, signOut: () => {}, signIn: () => {} });
export const useMe = () => useContext(MeContext);
