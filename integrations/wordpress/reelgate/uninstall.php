<?php
defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

delete_option( 'reelgate' );
delete_option( 'reelgate_tag_secret' );
