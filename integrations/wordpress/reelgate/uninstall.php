<?php
defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

function reelgate_remove_options() {
	delete_option( 'reelgate' );
	delete_option( 'reelgate_tag_secret' );
}

if ( ! is_multisite() ) {
	reelgate_remove_options();
	return;
}
foreach ( get_sites( array( 'fields' => 'ids', 'number' => 0 ) ) as $reelgate_site ) {
	switch_to_blog( $reelgate_site );
	reelgate_remove_options();
	restore_current_blog();
}
