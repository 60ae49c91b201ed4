"""The bytecode rewriter: Python control flow on traced values, compiled."""
