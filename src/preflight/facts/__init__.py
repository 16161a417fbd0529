"""The vocabulary: plain structs without behaviour. A field holds its value or says why not."""
