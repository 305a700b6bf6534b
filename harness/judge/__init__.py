"""The trusted side: it never imports candidate code, and the verdict is made here."""
