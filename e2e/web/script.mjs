// The scripted model: its replies to the messages of the tests.
export const script = {
  chunk: 24, // each chunk is rendered
  rules: [
    // Titles stay the beginning of the first message, except where a test is about them.
    { when: { system: 'Write a title', user: 'name this' }, reply: { text: '"A fitting title."' } },
    { when: { system: 'Write a title' }, reply: { error: { status: 400, message: 'no title' } } },
    { when: { user: 'formula' }, reply: { text: 'It costs $5 or $10. With $x^2 + 1$:\n\n\\[\n\\frac{a}{b}\n\\]\n\n```python\ndef f(): return 1\n```\n' } },
    { when: { user: 'sum', results: 0 }, reply: { text: 'Let me add those.', calls: [{ tool: 'everything:get-sum', args: { a: 19, b: 23 } }] } },
    { when: { user: 'sum', results: 1 }, reply: { text: 'The sum is **42**.\n\n| a | b | sum |\n| --- | --- | --- |\n| 19 | 23 | 42 |\n\n```python\nprint(19 + 23)\n```\n' } },
    { when: { user: 'write a note', results: 0 }, reply: { reasoning: 'They want a file. I will write one and check it.', text: 'I will write it to a file.', calls: [{ tool: 'files:write_file', args: { path: '{{note}}', content: 'hello' } }] } },
    { when: { user: 'write a note', result: 'DENIED' }, reply: { text: 'Then I will leave it.' } },
    { when: { user: 'write a note', results: 1 }, reply: { text: 'It is written.' } },
    { when: { user: 'essay' }, reply: { text: 'Once upon a time there was a gateway. ', repeat: 60, gapMs: 80 } },
    { when: { user: 'story without end' }, reply: { text: 'Once upon a time there was a gateway. ', repeat: 100_000, gapMs: 80 } },
    { when: { user: 'both', results: 0 }, reply: { text: 'Two things at once.', calls: [{ tool: 'everything:echo', args: { message: 'one' } }, { tool: 'everything:get-sum', args: { a: 1, b: 2 } }] } },
    { when: { user: 'both', results: 2 }, reply: { text: 'Both are done.' } },
    { when: { user: 'words', results: 0 }, reply: { text: 'The server counts them.', calls: [{ tool: 'hostile:count' }] } },
    { when: { user: 'hostile', results: 0 }, reply: { text: 'Here: <img src=x onerror="window.owned=1"> <script>window.owned=1</script> [link](javascript:window.owned=1) ![p](https://evil.example/p.png)', calls: [{ tool: 'hostile:markup', args: { word: 'b' } }] } },
    { when: { user: 'hostile', results: 1 }, reply: { text: '<iframe src="https://evil.example"></iframe> done' } },
    { when: { user: 'fail' }, reply: { error: { status: 400, message: 'the model does not like this' } } },
  ],
  default: { text: 'You said: {{user}}' },
};

/** Replies for the tests of elicitation and sampling; address is the URL of URL elicitation. */
export const questions = (address) => ({
  rules: [
    { when: { system: 'helpful test server' }, reply: { text: 'A line from the model.' } },
    { when: { user: 'ask me', results: 0 }, reply: { text: 'It will ask you.', calls: [{ tool: 'everything:trigger-elicitation-request' }] } },
    { when: { user: 'send me', results: 0 }, reply: { calls: [{ tool: 'everything:trigger-url-elicitation', args: { url: address, message: 'Sign in there.' } }] } },
    { when: { user: 'first there', results: 0 }, reply: { calls: [{ tool: 'everything:trigger-url-elicitation', args: { url: address, errorPath: true } }] } },
    { when: { user: 'use the model', results: 0 }, reply: { calls: [{ tool: 'everything:trigger-sampling-request', args: { prompt: 'a line' } }] } },
    { when: { user: 'picture', results: 0 }, reply: { text: 'Here it is.', calls: [{ tool: 'everything:get-tiny-image' }, { tool: 'hostile:sound' }] } },
    { when: { user: 'picture', results: 2 }, reply: { text: 'Look and listen.' } },
    { when: { results: 1 }, reply: { text: 'It got {{result}}' } },
  ],
});
