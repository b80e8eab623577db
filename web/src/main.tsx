import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app';
import { exchangeToken } from './lib/api';
import './styles/base.css';
import './styles/parts.css';
import './styles/views.css';
import './styles/charts.css';

const root = document.getElementById('root');
if (root) void exchangeToken().then((tokenError) => createRoot(root).render(<StrictMode><App tokenError={tokenError} /></StrictMode>));
