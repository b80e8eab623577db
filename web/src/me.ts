import { createContext, useContext } from 'react';

/** Who the page acts for, as the gateway says. */
export interface Me {
  caller: string;
  admin: boolean;
  authenticated: boolean;
  signOut: () => void;
  /** Shows the form for a key. */
  signIn: () => void;
}

export const MeContext = createContext<Me>({ caller: '', admin: false, authenticated: false, signOut: () => {}, signIn: () => {} });
export const useMe = () => useContext(MeContext);
